"""The figures of the demo: counted from what was seen, each thing once."""

import os
from pathlib import Path
from typing import Any

import pytest

from berth.demo.chat import Outcome
from berth.demo.crew import BASELINE_MIB, TOTAL_MIB
from berth.demo.hand_offs import HandOffs
from berth.demo.sampler import Sampler
from berth.demo.summary import summary_lines
from berth.demo.tally import Summary, Tally, collisions, median, percentile
from berth.sim.claims import Claim

ROOM = TOTAL_MIB - BASELINE_MIB


def event(kind: str, second: float, lease: str = "L1", **others: Any) -> dict[str, Any]:
    at = f"2026-11-30T12:00:{second:06.3f}Z"
    usual = {"card": "gpu0", "name": "chat", "why": "", "waited_s": 0.0}
    return {"kind": f"lease.{kind}", "at": at, "lease": lease, **usual, **others}


def hear(*events: dict[str, Any]) -> HandOffs:
    seen = HandOffs()
    for one in events:
        seen.hear(one)
    return seen


def test_hand_off_lasts_from_the_order_to_the_grant() -> None:
    """It is the figure that people will quote."""
    seen = hear(
        event("draining", 1.0),
        event("released", 2.0),
        event("freed", 2.5),
        event("granted", 2.75, "L2", name="coder", waited_s=1.75),
    )
    assert [(one.card, one.to, one.seconds) for one in seen.done] == [("gpu0", "coder", 1.75)]


def test_first_order_counts_where_several_have_to_leave() -> None:
    """A hand-off from two holders is one, and as long as the longer."""
    seen = hear(
        event("draining", 1.0, "L1"),
        event("draining", 2.0, "L2"),
        event("freed", 3.0, "L2"),
        event("freed", 4.0, "L1"),
        event("granted", 4.0, "L3"),
    )
    assert [one.seconds for one in seen.done] == [3.0]


@pytest.mark.parametrize(
    "before",
    [
        [],
        [event("freed", 1.0)],
        [event("draining", 1.0)],
        [event("draining", 1.0), event("kept", 2.0), event("freed", 3.0)],
        [event("draining", 1.0, card="gpu1"), event("freed", 3.0, card="gpu1")],
    ],
    ids=["free card", "left by itself", "not left yet", "kept, then left", "another card"],
)
def test_no_hand_off_without_one_who_left_for_it(before: list[dict[str, Any]]) -> None:
    """A grant on a free card is none, nor one beside a holder that was asked and is still there."""
    assert hear(*before, event("granted", 5.0, "L2")).done == []


def test_lease_on_two_cards_is_a_hand_off_on_each_and_one_wait() -> None:
    """Two cards change hands; one engine waited."""
    seen = hear(
        *(event("draining", 1.0, "L1", card=card) for card in ("gpu0", "gpu1")),
        *(event("freed", 2.0, "L1", card=card) for card in ("gpu0", "gpu1")),
        *(event("granted", 3.0, "L2", card=card) for card in ("gpu0", "gpu1")),
    )
    assert [one.card for one in seen.done] == ["gpu0", "gpu1"]
    assert list(seen.waits) == ["L2"]


def test_one_grant_uses_up_who_left() -> None:
    """A second grant into what is left over is no second hand-off."""
    seen = hear(
        event("draining", 1.0),
        event("freed", 2.0),
        event("granted", 2.0, "L2"),
        event("granted", 2.1, "L3"),
    )
    assert len(seen.done) == 1


@pytest.mark.parametrize(
    ("overfull", "died", "contested", "expected"),
    [
        ((0, 0), (0, 0), 0, 0),
        ((1, 0), (1, 0), 0, 1),
        ((3, 0), (1, 0), 0, 3),
        ((0, 0), (2, 0), 0, 2),
        ((1, 2), (1, 0), 0, 3),
        ((0, 0), (0, 0), 2, 2),
    ],
)
def test_collision_is_counted_once(
    overfull: tuple[int, int], died: tuple[int, int], contested: int, expected: int
) -> None:
    """An overfull card and the engine that dies of it are one; a miss of the sampler hides none."""
    assert collisions(overfull, died, contested) == expected


def test_figures_of_nothing_are_none_and_of_one_are_it() -> None:
    """Not measured is not nought."""
    assert (median([]), percentile([], 99)) == (None, None)
    assert (median([0.5]), percentile([0.5], 99)) == (0.5, 0.5)
    assert percentile([float(number) for number in range(1, 201)], 99) == 198.0


def test_what_ends_after_the_end_does_not_count() -> None:
    """The end of the demo kills everything, and would else count as cuts."""
    tally = Tally(cards=2)
    assert tally.count(Outcome.WHOLE)
    assert tally.count(Outcome.CUT)
    tally.freeze()
    assert not tally.count(Outcome.CUT)
    tally.count_out_of_memory(0)
    tally.hear(event("contested", 1.0))
    summary = summed(tally)
    assert (summary.requests, summary.requests_cut, summary.collisions) == (2, 1, 0)


def test_sampler_sees_an_overfull_card_once_while_it_is_one(tmp_path: Path) -> None:
    """Each look would else be a collision of its own; and freed, then full again is a second."""
    sampler = Sampler(tmp_path)
    claim = Claim(tmp_path, 1)
    counted = []
    for mib in (ROOM, ROOM + 1, ROOM + 1, ROOM, ROOM + 1):
        claim.set(mib)
        sampler.look()
        counted.append(sampler.times_overfull[1])
    assert counted == [0, 1, 1, 1, 2]
    assert sampler.times_overfull[0] == 0
    assert sampler.most_mib == [0, ROOM + 1]


def test_sampler_counts_only_what_lives(tmp_path: Path) -> None:
    """The death of the pid frees the memory, whatever its file says."""
    sampler = Sampler(tmp_path)
    dead = os.fork()
    if dead == 0:
        os._exit(0)
    Claim(tmp_path, 0, dead).set(ROOM)
    Claim(tmp_path, 0).set(ROOM)
    sampler.look()
    os.waitpid(dead, 0)
    sampler.look()
    assert sampler.most_mib[0] in {ROOM, 2 * ROOM}
    sampler.most_mib[0] = 0
    sampler.look()
    assert sampler.most_mib[0] == ROOM


def summed(tally: Tally, **others: Any) -> Summary:
    usual = {"seconds": 30.04, "seed": 1, "without": False, "interrupted": False}
    return tally.summary(**{**usual, "overfull": [0, 0], **others})


def test_summary_says_what_was_measured() -> None:
    """The last block is what stays on the screen."""
    tally = Tally(cards=2)
    for _ in range(12):
        tally.count(Outcome.WHOLE)
    for one in (
        event("draining", 1.0),
        event("freed", 2.0),
        event("granted", 2.5, "L2", name="coder", waited_s=1.5, why="15.6 GiB; waited 1s for chat"),
    ):
        tally.hear(one)
    assert "\n".join(summary_lines(summed(tally))) == (
        "30s, 2 simulated cards, 5 engines, 1 stowaway\n"
        "  hand-offs      1  each after the card showed the memory free; median 1.5s\n"
        "  collisions     0  the same load without Berth:  berth demo --without\n"
        "  requests      12  cut 0\n"
        "  waited            median 1.5s, longest 1.5s (coder, for chat)\n"
        "Now with your own card:  berth daemon   then   berth run -- CMD"
    )


def test_summary_without_names_the_way_back() -> None:
    """Who has seen the collisions is to see the same seed with Berth."""
    tally = Tally(cards=2)
    tally.count(Outcome.WHOLE)
    tally.count(Outcome.FAILED)
    summary = summed(tally, without=True, seed=7, interrupted=True, overfull=[3, 0])
    assert "\n".join(summary_lines(summary)) == (
        "30s, 2 simulated cards, 5 engines, 1 stowaway; ended by you\n"
        "  collisions     3  an engine loaded beside others, out of memory\n"
        "  requests       2  cut 0, failed 1: the engine could not load\n"
        "The same load with Berth:  berth demo --seed 7"
    )


def test_json_has_the_fields_that_scripts_read() -> None:
    """Fields may be added, never lost or renamed."""
    promised = {
        *("seconds", "handoffs", "collisions", "requests", "requests_cut"),
        *("granted", "refused", "handoff_median_s", "handoff_p99_s"),
    }
    assert promised <= set(summed(Tally(cards=2)).as_json())
