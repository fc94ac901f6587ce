"""A laptop's card that sleeps, under a whole broker."""

from collections.abc import Callable

import pytest

from tests.system.conftest import CARD
from tests.system.node import Node, wait_for

pytestmark = pytest.mark.system


def test_request_wakes_a_sleeping_card_which_then_sleeps_again(
    make_node: Callable[..., Node],
) -> None:
    """B1: asleep it is not read; a request wakes it, its grant waits for the reading."""
    node = make_node({**CARD, "runtime_status": "suspended"}, CARD)
    node.start()
    sleeping, other = node.status()["cards"]
    assert (sleeping["state"], sleeping["total_mib"]) == ("asleep", None)
    assert other["state"] == "ok"
    run = node.run("--as", "chat", "--", *node.claiming(9000, "sleep", "99"))
    node.wait_state("chat", "running")
    wait_for(lambda: (node.lease("chat") or {})["used_mib"] == 9000)
    assert node.status()["cards"][0]["state"] == "ok"
    run.terminate()
    run.wait(timeout=20.0)
    node.wait_gone("chat")
    wait_for(lambda: node.status()["cards"][0]["state"] == "asleep")
    reasons = [event["reason"] for event in node.events("card.unmeasured")]
    assert set(reasons) == {"asleep"}
