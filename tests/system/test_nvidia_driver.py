"""The driver as a whole: not there, upgraded, gone and back, refusing a card at the start."""

from collections.abc import Callable

import pytest

from tests.nvml_stub import FOREVER, Nvml, Slice
from tests.system.node import wait_for
from tests.system.nvidia_node import CARD, NvidiaNode
from tests.system.test_nvidia import granted, holds, state_is, worker_of

MakeNode = Callable[..., NvidiaNode]

pytestmark = pytest.mark.system


def test_upgrade_under_a_running_berthd_says_reboot_and_keeps_leases(
    make_nvidia_node: MakeNode,
) -> None:
    """HP07: new sessions are refused. Workers are replaced, for a new one might load what fits."""
    node = make_nvidia_node(CARD)
    node.start()
    holder = holds(node, "holder", 9000)
    node.driver.fail_init(Nvml.MISMATCH)
    assert granted(node, "gpu0", "1s").returncode in {0, 75}
    assert node.card("gpu0")["state"] == "ok", "an open session works on"
    before = worker_of(node, 1)
    node.driver.fail_sessions(Nvml.UNINITIALIZED)
    row = state_is(node, "gpu0", "unmeasured", "reboot")
    assert "upgraded" in row["why"]
    node.driver.fail_sessions(Nvml.OK)
    wait_for(lambda: worker_of(node, 1) - before, why="a new worker is tried")
    assert granted(node, "gpu0", "1s").returncode == 75
    assert (holder.poll(), (node.lease("holder") or {})["state"]) == (None, "running")
    node.driver.fail_init(Nvml.OK)
    state_is(node, "gpu0", "ok")
    told = [e["reason"] for e in node.events("card.unmeasured")]
    assert told.count("driver_mismatch") == 1, "told once, however many workers tried"


def test_driver_that_is_unloaded_and_loaded_again(make_nvidia_node: MakeNode) -> None:
    """A module can go and come under berthd: every card is unmeasured, and read again."""
    node = make_nvidia_node(CARD, CARD)
    node.start()
    node.driver.fail_sessions(Nvml.NO_DRIVER)
    node.driver.fail_init(Nvml.NO_DRIVER)
    for name in ("gpu0", "gpu1"):
        state_is(node, name, "unmeasured", "modprobe nvidia")
    assert granted(node, "gpu0", "1s").returncode == 75
    node.driver.fail_sessions(Nvml.OK)
    node.driver.fail_init(Nvml.OK)
    for name in ("gpu0", "gpu1"):
        state_is(node, name, "ok")
        assert granted(node, name).returncode == 0


def test_driver_that_is_not_loaded_at_the_start_ends_berthd_with_a_sentence(
    make_nvidia_node: MakeNode,
) -> None:
    """Whoever starts berthd by hand reads what to do; a service manager starts it again."""
    node = make_nvidia_node(CARD)
    node.driver.fail_init(Nvml.NO_DRIVER)
    tried = node.berth("daemon", "--gpu", "all")
    assert tried.returncode == 69
    assert "modprobe nvidia" in tried.stderr
    assert "berth demo" in tried.stderr
    assert "Traceback" not in tried.stderr
    node.driver.fail_init(Nvml.OK)
    node.start()
    assert granted(node, "gpu0").returncode == 0


def test_driver_that_hangs_at_the_start_is_not_waited_for_for_ever(
    make_nvidia_node: MakeNode,
) -> None:
    """B1: berthd itself never calls the driver, not even to ask which cards there are."""
    node = make_nvidia_node(CARD)
    node.driver.fail_init(Nvml.OK, delay_ms=FOREVER)
    tried = node.berth("daemon", timeout=40.0)
    assert tried.returncode == 69
    assert "did not name its cards in 15 s" in tried.stderr


def test_card_refused_at_the_start_is_shown_and_heals(make_nvidia_node: MakeNode) -> None:
    """HP06: the good card is governed, the cut one is a row that says why, and comes back."""
    cut = (Slice("MIG-1", 2**30), Slice("MIG-2", 2**30, instance=2))
    node = make_nvidia_node(CARD, CARD)
    node.feeder.change(0, mig=True, slices=cut)
    node.start()
    assert "gpu0 (" in node.log_text()
    assert "cannot be governed: MIG has cut the card (2 slices)" in node.log_text()
    assert [card["card"] for card in node.status()["cards"]] == ["gpu1", "gpu0"]
    row = state_is(node, "gpu0", "unmeasured", "nvidia-smi -mig 0")
    assert row["capacity_mib"] is None
    first = node.berth("run", "--wait", "5s", "--", "true")
    assert first.returncode == 0, "a request without a card goes to one that can be had"
    assert granted(node, "gpu0", "1s").returncode == 75
    node.feeder.change(0, mig=False, slices=())
    state_is(node, "gpu0", "ok")
    assert granted(node, "gpu0").returncode == 0


def test_only_the_named_cards_are_governed(make_nvidia_node: MakeNode) -> None:
    """M1: by index and by address in any spelling; what is not there is refused by name."""
    node = make_nvidia_node(CARD, CARD, CARD)
    node.start("--gpu", "2,00000000:41:00.0")
    assert [card["card"] for card in node.status()["cards"]] == ["gpu0", "gpu2"]
    assert granted(node, "gpu1").returncode == 76
    assert node.stop() == 0
    tried = node.berth("daemon", "--gpu", "0,9")
    assert (tried.returncode, "no card 9 on this node" in tried.stderr) == (76, True)
