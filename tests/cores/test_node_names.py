"""Names at the node: numbered ones, exclusive ones, and who waits for whose end (R10)."""

import pytest

from berth.actors.card.messages import (
    NameFreed,
    SeekLease,
)
from berth.actors.node.messages import Stop, Withdraw
from tests.cores.playing_node import PlayedNode

# --- names ----------------------------------------------------------------------------------------


def test_made_up_names_are_numbered_from_two() -> None:
    """R1, R10: `llama-server`, `llama-server-2` …, counted over waiters and holders."""
    node = PlayedNode()
    node.holds("a", "llama-server", numbered=True)
    node.asks("b", "llama-server", numbered=True)
    node.asks("c", "llama-server", numbered=True)
    names = [seek.terms.name for seek in node.heard(SeekLease)]
    assert names == ["llama-server", "llama-server-2", "llama-server-3"]


def test_number_that_is_free_again_is_given_again() -> None:
    """R10: a name is taken only while somebody has it."""
    node = PlayedNode()
    lease = node.holds("a", "llama-server", numbered=True)
    node.asks("b", "llama-server", numbered=True)
    node.ends(lease)
    node.asks("c", "llama-server", numbered=True)
    assert node.heard(SeekLease)[-1].terms.name == "llama-server"


def test_given_name_is_kept_as_it_is() -> None:
    """R10: on the socket names may repeat."""
    node = PlayedNode()
    node.holds("a", "chat")
    node.asks("b", "chat")
    assert [seek.terms.name for seek in node.heard(SeekLease)] == ["chat", "chat"]
    assert node.heard(SeekLease)[-1].behind == ""


def freed(node: PlayedNode) -> list[str]:
    """Return the requests whose namesakes are gone, in order."""
    return [told.request for card in ("gpu0", "gpu1") for told in node.heard(NameFreed, card)]


def test_exclusive_name_waits_for_its_holder() -> None:
    """R10: one lease at a time; the card hears whom it waits for, and when that is over."""
    node = PlayedNode()
    lease = node.holds("a", exclusive=True)
    request = node.asks("b", exclusive=True, cards=("gpu1",))
    assert node.heard(SeekLease, "gpu1")[0].behind == lease
    assert freed(node) == []
    node.ends(lease)
    assert freed(node) == [request]


def test_who_waits_behind_a_request_waits_for_the_lease_it_becomes() -> None:
    """R10: the request's grant is not its end."""
    node = PlayedNode()
    first = node.asks("a", exclusive=True)
    second = node.asks("b", exclusive=True)
    assert node.heard(SeekLease)[-1].behind == first
    lease = node.grants(first)
    assert node.node.requests[second].behind == lease
    assert freed(node) == []
    node.ends(lease)
    assert freed(node) == [second]


@pytest.mark.parametrize("way", ["refused", "withdrawn", "gone", "stopped"])
def test_name_is_freed_when_the_request_before_ends_without_a_lease(way: str) -> None:
    """R10: refused, withdrawn or left: whatever ends it, the next one goes on."""
    node = PlayedNode()
    first = node.asks("a", exclusive=True)
    second = node.asks("b", exclusive=True)
    match way:
        case "refused":
            node.refuses(first)
        case "withdrawn":
            node.calls("a", Withdraw(request=first))
        case "gone":
            node.leaves("a")
        case _:
            node.calls("person", Stop(target=first, at_once=False))
    assert freed(node) == [second]


def test_three_of_a_name_go_one_after_the_other() -> None:
    """R10: each waits for the one before it, never two for the same."""
    node = PlayedNode()
    first, second, third = (node.asks(client, exclusive=True) for client in "abc")
    lease = node.grants(first)
    assert node.node.requests[third].behind == second
    node.ends(lease)
    assert freed(node) == [second]
    second_lease = node.grants(second)
    assert node.node.requests[third].behind == second_lease
    node.ends(second_lease)
    assert freed(node) == [second, third]


def test_last_of_three_waits_for_the_first_when_the_middle_one_leaves() -> None:
    """R10: freed only when nobody of the name is left before it."""
    node = PlayedNode()
    lease = node.holds("a", exclusive=True)
    middle = node.asks("b", exclusive=True)
    last = node.asks("c", exclusive=True)
    node.refuses(middle)
    assert freed(node) == []
    assert node.node.requests[last].behind == lease
    node.ends(lease)
    assert freed(node) == [last]


def test_other_names_hold_nobody_up() -> None:
    """R10: the rule is about one name."""
    node = PlayedNode()
    node.holds("a", "chat", exclusive=True)
    node.asks("b", "images", exclusive=True)
    assert node.heard(SeekLease)[-1].behind == ""
