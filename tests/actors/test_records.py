"""Leases as the journal keeps them: what is carried, what an older or newer Berth wrote."""

import pytest

from berth.actors.journal.records import decode_lease, encode_lease
from berth.ids import Key
from berth.lease import (
    WHOLE_CARD,
    Lease,
    Running,
    Terms,
)
from tests.actors.kept import HOLD, STATES, named


@pytest.mark.parametrize("lease", STATES, ids=named)
def test_all_that_a_lease_carries_is_kept(lease: Lease) -> None:
    """S6: terms, ask, holder with start time, tree, scope, attempt: all that recovery needs."""
    assert decode_lease(encode_lease(lease)).held == lease.held


def test_hold_is_kept_without_a_process() -> None:
    """Q1: a person's hold stays across restarts."""
    assert decode_lease(encode_lease(HOLD)) == HOLD


def test_fields_of_a_newer_berth_are_ignored_and_missing_ones_have_defaults() -> None:
    """An update and a way back must not cost anybody a lease."""
    record = b'{"lease":"L1","name":"a","state":"held","granted":5.0,"mood":"good"}'
    lease = decode_lease(record)
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
        decode_lease(record)
