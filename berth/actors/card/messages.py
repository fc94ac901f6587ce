"""What a card hears and says."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from berth.actors.journal.messages import Record
from berth.actors.node.inbox import CallId, ToNode
from berth.actors.trees.messages import (
    Elsewhere,
    EndTree,
    ForgetTree,
    KillTree,
    WakeHolder,
    WatchTree,
)
from berth.errors import Code
from berth.ids import Attempt, CardName, LeaseId, ProcessId, RequestId
from berth.lease import Ask, Granted, Lease, Terms
from berth.readings import Reading, Unmeasured
from berth.units import Instant, Seconds

# --- heard --------------------------------------------------------------------------------------


class SeekLease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """From the node: somebody wants room here. Ends in exactly one grant, refusal or withdrawal.

    `arrived` is the instant of asking, earlier for a client that had waited before a restart: the
    same on each of several `cards`. `behind` names the lease or request of the same exclusive name
    that must end first. `chosen` says why this card, for a request that took any. `again`: the
    card was started again, and has been asked before.
    """

    request: RequestId
    terms: Terms
    ask: Ask
    holder: ProcessId | None
    cards: tuple[CardName, ...]
    arrived: Instant
    behind: str = ""
    chosen: str = ""
    again: bool = False


class AskHolders(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: the request's other cards are as far, so ask holders for it; or, no more."""

    request: RequestId
    go: bool


class OfferShare(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: it fits on all its cards. Keep the share free, and answer."""

    request: RequestId
    round: int


class WithdrawOffer(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: not all cards accepted. The share is nobody's again, and the request waits."""

    request: RequestId
    round: int


class CommitShare(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: the grant on all cards is in the journal. This is the card's part of it."""

    request: RequestId
    lease: Granted


class CaughtUp(msgspec.Struct, frozen=True):
    """From the node, to a card that was started again: you have heard all that you missed."""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: what would it cost to grant this here (Q9)? Nothing changes."""

    seek: SeekLease


class NameFreed(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: the namesake that `request` waited for is gone."""

    request: RequestId


class WithdrawRequest(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: the client withdrew, or is gone. `call` is answered where there is one.

    `refused`: another card has refused its share, for that reason.
    """

    request: RequestId
    why: str
    call: CallId | None = None
    refused: Code | None = None


class HolderStarted(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: the granted command runs."""

    call: CallId
    lease: LeaseId
    peer: ProcessId
    members: frozenset[ProcessId]
    scope: str | None = None


class HolderWord(StrEnum):
    """What a holder answers to an order, or says of itself."""

    HEARD = "heard"
    BOUNDARY = "boundary"
    RELEASED = "released"
    FAILED = "failed"
    READY = "ready"
    SERVED = "served"


class HolderAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: a holder's word. It moves states; it frees no memory.

    `in_flight`: how many replies it has still to give, where it knows.
    """

    call: CallId
    lease: LeaseId
    peer: ProcessId
    attempt: Attempt
    word: HolderWord
    why: str = ""
    in_flight: int | None = None


class ReleaseLease(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: the holder, or for a hold a person (`peer` None), gives the lease back.

    `unseen`: the client left before it saw its grant; nobody holds the lease.
    """

    call: CallId
    lease: LeaseId
    peer: ProcessId | None
    unseen: bool = False


class AttachHolder(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: a holder that outlived berthd, or ran without it, comes back.

    `lease` is the one it had, None when it never had one: it gets `request`'s.
    """

    call: CallId
    request: RequestId
    lease: LeaseId | None
    terms: Terms
    ask: Ask
    holder: ProcessId
    cards: tuple[CardName, ...]
    keys: tuple[str, ...]
    state: str
    attempt: Attempt
    members: frozenset[ProcessId]
    ran_for: Seconds
    scope: str | None = None


class ConfirmGrant(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: a client asks again for what it was granted. Does it still hold that?"""

    call: CallId
    lease: LeaseId


class StopLease(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: a person wants it stopped; `at_once` skips the boundary."""

    call: CallId
    lease: LeaseId
    at_once: bool = False


class ReclaimLease(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: a person gives a lease up; kill what is left of it, and close it (H4)."""

    call: CallId
    lease: LeaseId


class HolderGone(msgspec.Struct, frozen=True, kw_only=True):
    """From the trees actor: the lease's process is gone and what was left of its tree was ended."""

    lease: LeaseId


class TreeSeen(msgspec.Struct, frozen=True, kw_only=True):
    """From the trees actor: the living members of a lease's tree changed."""

    lease: LeaseId
    members: frozenset[ProcessId]


class CardRead(msgspec.Struct, frozen=True, kw_only=True):
    """From the probe: a look at the card."""

    reading: Reading


class CardUnread(msgspec.Struct, frozen=True, kw_only=True):
    """From the probe: the card could not be read."""

    why: Unmeasured


class XidThrown(msgspec.Struct, frozen=True, kw_only=True):
    """From the probe: the card threw that Xid, a fault by NVIDIA's number, so many times."""

    xid: int
    times: int


class GrantLost(msgspec.Struct, frozen=True, kw_only=True):
    """From the journal: these grants could not be written, so their clients never saw them."""

    leases: tuple[LeaseId, ...]


class JournalState(msgspec.Struct, frozen=True, kw_only=True):
    """From the journal: whether it can be written."""

    writable: bool


class Describe(msgspec.Struct, frozen=True, kw_only=True):
    """From the node: say what is on you."""

    call: CallId


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """From the ticker: the machine was suspended and is back. What was read is old (S8).

    `slept` is for how long: what lasts until a time of day has that much less left.
    """

    slept: Seconds = Seconds(0.0)


class WatchAgain(msgspec.Struct, frozen=True):
    """From the composition root: the trees actor or the probe was started again, and knows nothing.

    They are told again whom to watch, and at which pace.
    """


class ForgetWaiters(msgspec.Struct, frozen=True, kw_only=True):
    """From a node that was started again: it knows no waiters. Their clients ask again.

    `kept` are the leases that the journal has for this card: one that is only offered here was
    committed by the node that is gone.
    """

    kept: tuple[Lease, ...] = ()


class CloseCard(msgspec.Struct, frozen=True):
    """From the node, once: berthd is stopping. Waiters are refused, holders run on."""


class Tick(msgspec.Struct, frozen=True):
    """From the ticker: time has passed."""


CardInbox: TypeAlias = (
    SeekLease
    | AskHolders
    | OfferShare
    | WithdrawOffer
    | CommitShare
    | CaughtUp
    | Elsewhere
    | Survey
    | NameFreed
    | WithdrawRequest
    | HolderStarted
    | HolderAnswered
    | ReleaseLease
    | AttachHolder
    | ConfirmGrant
    | StopLease
    | ReclaimLease
    | HolderGone
    | TreeSeen
    | CardRead
    | CardUnread
    | XidThrown
    | GrantLost
    | JournalState
    | Describe
    | Resumed
    | WatchAgain
    | ForgetWaiters
    | CloseCard
    | Tick
)

# --- said ---------------------------------------------------------------------------------------


class SetPace(msgspec.Struct, frozen=True, kw_only=True):
    """To the probe: how often to look. Fast while a release or a start is in flight.

    `wake`: a lease or a waiter is on the card, so a sleeping one is woken to be read (B1).
    """

    fast: bool
    wake: bool = False


CardEffect: TypeAlias = (
    Record | ToNode | SetPace | WatchTree | ForgetTree | WakeHolder | EndTree | KillTree
)
