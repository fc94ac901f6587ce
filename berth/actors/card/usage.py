"""What engines have needed on this card (B7): learned from readings, kept, and offered.

The peak of a run is the most that any reading showed with its processes. What an engine needs is
the largest peak of its last few runs: one that is set up smaller is believed after a while, one
that grows at once.
"""

from typing import Final

from msgspec.structs import replace

from berth.actors.card.state import Card, Learned, Measured
from berth.ids import LeaseId
from berth.lease import Lease, Releasing, Stuck
from berth.units import MiB

RUNS_KEPT: Final = 5


def note_peaks(card: Card, measured: Measured) -> Card:
    """Raise the peaks of those who use more than before."""
    higher = {
        lease.id: measured.used[lease.id]
        for lease in card.leases
        if not isinstance(lease, Releasing | Stuck)
        and lease.id not in measured.unsized
        and measured.used.get(lease.id, 0) > card.peaks.get(lease.id, 0)
    }
    return replace(card, peaks={**card.peaks, **higher}) if higher else card


def learn(card: Card, lease: Lease) -> Card:
    """A run is over: learn what it needed, if it used anything."""
    peak = card.peaks.get(lease.id)
    if peak is None:
        return card
    before = card.learned.get(lease.name, Learned())
    peaks = (*before.peaks, peak)[-RUNS_KEPT:]
    learned = {**card.learned, lease.name: Learned(runs=before.runs + 1, peaks=peaks)}
    return replace(card, learned=learned, peaks=without(card, lease.id))


def without(card: Card, lease: LeaseId) -> dict[LeaseId, MiB]:
    """Return the peaks of all other runs."""
    return {other: peak for other, peak in card.peaks.items() if other != lease}


def needs(card: Card, name: str) -> MiB | None:
    """Return what an engine of that name needs here, None when that was never seen."""
    learned = card.learned.get(name)
    return None if learned is None else learned.needs
