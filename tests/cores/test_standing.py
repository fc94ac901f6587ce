"""Why one waits, in words and in seconds: the sentences that every screen shows."""

import pytest

from berth.standing import Blocker, Eta, How, Outlook, aged, count, expected, sentence
from berth.units import MiB, Seconds

GIB = 1024
MEDIAN = Seconds(2.0)


def by(how: How, **changes: object) -> Blocker:
    return Blocker(who="chat", how=how, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", How)
def test_every_way_has_a_sentence_that_a_person_can_read(how: How) -> None:
    """U5: a bare code is what people open issues about."""
    words = sentence([by(how)])
    assert len(words.split()) >= 3
    assert "None" not in words
    assert how.value not in words or "_" not in how.value


@pytest.mark.parametrize(
    ("in_flight", "words"),
    [
        (None, "chat was asked to finish"),
        (0, "chat is stopping"),
        (1, "chat is finishing 1 reply"),
        (3, "chat is finishing 3 replies"),
    ],
)
def test_a_holder_on_its_way_out_is_told_with_what_it_has_still_to_answer(
    in_flight: int | None, words: str
) -> None:
    """The reply in flight is why one waits, where the holder tells it."""
    assert sentence([by(How.DRAINING, in_flight=in_flight)]) == words


def test_what_comes_after_is_part_of_the_sentence() -> None:
    """Who waits wants to know whether it will fit then."""
    leaving = [by(How.DRAINING)]
    fits = Outlook(ask=MiB(16 * GIB), room=MiB(0), then=MiB(17 * GIB), fits=True)
    assert sentence(leaving, fits).endswith("; then 17.0 GiB is free and you fit")
    unknown = Outlook(ask=MiB(16 * GIB), room=MiB(0), then=None, fits=True)
    assert sentence(leaving, unknown).endswith("; then you fit")
    does_not = Outlook(ask=MiB(16 * GIB), room=MiB(0), then=MiB(9 * GIB), fits=False)
    assert "then" not in sentence(leaving, does_not)


def test_who_would_fit_now_hears_why_it_may_not_pass() -> None:
    """Q7: "wait, there is room!" is the first thing that somebody behind a big one says."""
    first = [by(How.FIRST_IN_LINE, mib=MiB(36 * GIB))]
    room = Outlook(ask=MiB(3 * GIB), room=MiB(3 * GIB))
    assert sentence(first, room) == "3.0 GiB is free now, but then chat (36.0) would not fit"
    no_room = Outlook(ask=MiB(3 * GIB), room=MiB(1 * GIB))
    assert sentence(first, no_room) == "chat comes first"


def test_nobody_in_the_way_is_no_empty_sentence() -> None:
    """Between an event and its grant a waiter has no reason."""
    assert sentence([]) == "about to be granted"


@pytest.mark.parametrize(
    ("blockers", "expected_eta"),
    [
        ([by(How.DRAINING)], Eta(left=Seconds(1.5), of="handoff")),
        ([by(How.IN_TURN, left=Seconds(60.0))], Eta(left=Seconds(62.0), of="turn")),
        ([by(How.HELD, left=Seconds(30.0))], Eta(left=Seconds(30.0), of="hold")),
        ([by(How.HELD)], None),
        ([by(How.BUSY)], None),
        ([by(How.STUCK)], None),
        ([by(How.UNMEASURED)], None),
        ([by(How.FIRST_IN_LINE)], None),
        ([by(How.DRAINING), by(How.BUSY)], None),
        (
            [by(How.DRAINING), by(How.IN_TURN, left=Seconds(60.0))],
            Eta(left=Seconds(62.0), of="turn"),
        ),
        ([], None),
    ],
)
def test_eta_is_arithmetic_or_it_is_not_there(
    blockers: list[Blocker], expected_eta: Eta | None
) -> None:
    """U6: all in the way must go; one whose end nobody knows makes the whole unknown."""
    assert expected(blockers, Seconds(0.5), MEDIAN) == expected_eta


def test_a_hand_off_that_takes_longer_than_usual_has_no_eta() -> None:
    """U6: "any moment now" for five minutes is a guess."""
    assert expected([by(How.DRAINING)], Seconds(2.0), MEDIAN) is None
    assert expected([by(How.DRAINING)], Seconds(0.0), None) is None


def test_what_is_left_grows_less_with_time() -> None:
    """A sentence that is said again 5 s later must not name the same seconds."""
    old = (by(How.IN_TURN, left=Seconds(8.0)), by(How.DRAINING))
    assert [one.left for one in aged(old, Seconds(5.0))] == [3.0, None]
    assert aged(old, Seconds(50.0))[0].left == 0.0


def test_plurals() -> None:
    """1 replies is not English."""
    assert [count(n, "reply") for n in (0, 1, 2)] == ["0 replies", "1 reply", "2 replies"]
    assert count(2, "card") == "2 cards"
