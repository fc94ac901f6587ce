"""Leases as the journal keeps them: what is carried, what an older or newer Berth wrote."""

import pytest
from msgspec.structs import replace

from berth.actors.journal.records import Clocks, decode_lease, encode_lease
from berth.ids import Key
from berth.lease import (
    WHOLE_CARD,
    Lease,
    Running,
    Terms,
    with_held,
)
from berth.units import Instant
from tests.actors.kept import HOLD, STATES, named

NOW = Clocks(monotonic=2000.0, boot=2500.0, wall=1_800_000_000.0)


@pytest.mark.parametrize("lease", STATES, ids=named)
def test_all_that_a_lease_carries_is_kept(lease: Lease) -> None:
    """S6: terms, ask, holder with start time, tree, scope, attempt: all that recovery needs."""
    assert decode_lease(encode_lease(lease, NOW), NOW).held == lease.held


def test_hold_is_kept_without_a_process() -> None:
    """Q1: a person's hold stays across restarts."""
    assert decode_lease(encode_lease(HOLD, NOW), NOW) == HOLD


def test_hold_ends_by_the_clock_and_not_by_the_hours_awake() -> None:
    """S8: kept on the boot clock, which runs on while the machine sleeps."""
    ends = with_held(HOLD, replace(HOLD.held, until=Instant(2600.0)))  # 600 s left
    record = encode_lease(ends, NOW)
    slept = Clocks(monotonic=2100.0, boot=3000.0, wall=1_800_000_500.0)
    assert decode_lease(record, slept).held.until == 2200.0


def test_hold_ends_by_the_wall_clock_after_a_reboot() -> None:
    """S8: the boot clock started anew, and means nothing any more."""
    ends = with_held(HOLD, replace(HOLD.held, until=Instant(2600.0)))  # 600 s left
    record = encode_lease(ends, NOW)
    rebooted = Clocks(monotonic=20.0, boot=20.0, wall=1_800_000_100.0)
    assert decode_lease(record, rebooted, same_boot=False).held.until == 520.0


def test_fields_of_a_newer_berth_are_ignored_and_missing_ones_have_defaults() -> None:
    """An update and a way back must not cost anybody a lease."""
    record = b'{"lease":"L1","name":"a","state":"held","granted":5.0,"mood":"good"}'
    lease = decode_lease(record, NOW)
    assert isinstance(lease, Running)
    assert (lease.id, lease.held.ask, lease.held.holder) == ("L1", WHOLE_CARD, None)
    assert lease.terms == Terms(name="a", key=Key(""))


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{}",
        b'{"lease":"L1"}',
        b'{"lease":"L1","name":"a","state":"held","granted":1,"priority":9}',
        b'{"lease":"L1","name":"a","state":"draining","granted":1,"order":"dance"}',
    ],
)
def test_damaged_record_is_a_value_error(record: bytes) -> None:
    """`Store.kept` promises one kind of error, so that the daemon can tell it."""
    with pytest.raises(ValueError, match=r".+"):
        decode_lease(record, NOW)
