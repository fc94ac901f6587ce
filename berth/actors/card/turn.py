"""One decision in the making: the card as it changes, and what is to be told when it is done."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.actors.card import juggle, usage
from berth.actors.card.messages import CardEffect, SetPace
from berth.actors.card.state import Card, Waiter
from berth.actors.journal.messages import (
    DropLease,
    Entry,
    Fact,
    Happened,
    Record,
    SaveBaseline,
    SaveHandOffs,
    SaveLease,
    SaveUsage,
)
from berth.actors.node.inbox import (
    CallDone,
    CallFailed,
    CallId,
    LeaseEnded,
    OrderGiven,
    RequestRefused,
    ToNode,
)
from berth.actors.trees.messages import ForgetTree, WatchTree
from berth.errors import Code
from berth.ids import Attempt
from berth.lease import (
    HEAR_WITHIN,
    Alive,
    Draining,
    DrainPhase,
    Granted,
    Held,
    Lease,
    Order,
    Releasing,
    Running,
    Starting,
    Stuck,
)
from berth.units import Instant, MiB, after, since

_IN_FLIGHT: Final = (Granted, Starting, Releasing)
_ENDING: Final = frozenset({DrainPhase.BOUNDARY, DrainPhase.ENDING})


class Turn(msgspec.Struct):
    """Collects what one event changes. `then` rides on the journal record of `entries`."""

    card: Card
    now: Instant
    entries: list[Entry] = msgspec.field(default_factory=list)
    then: list[ToNode] = msgspec.field(default_factory=list)
    effects: list[CardEffect] = msgspec.field(default_factory=list)

    def finish(self) -> tuple[Card, tuple[CardEffect, ...]]:
        """Return the card and what to tell, the journal's record first."""
        self._keep_pace()
        if self.entries:
            record = Record(entries=tuple(self.entries), then=tuple(self.then))
            return self.card, (record, *self.effects)
        return self.card, (*self.then, *self.effects)

    def _keep_pace(self) -> None:
        fast = any(
            isinstance(lease, _IN_FLIGHT)
            or (isinstance(lease, Draining) and lease.phase in _ENDING)
            for lease in self.card.leases
        )
        wake = bool(self.card.leases or self.card.queue)
        if (fast, wake) != (self.card.fast, self.card.wake):
            self.card = replace(self.card, fast=fast, wake=wake)
            self.tell_pace()

    def tell_pace(self) -> None:
        """Tell the probe how the card wants to be read."""
        self.effects.append(SetPace(fast=self.card.fast, wake=self.card.wake))

    def change(self, before: Lease, after_: Lease) -> None:
        """Change a lease and keep the change."""
        self.card = self.card.with_change(before, after_)
        if isinstance(after_, Running):
            self.card = juggle.ready(self.card, after_.id, self.now)
        self.keep(after_)

    def keep(self, lease: Lease) -> None:
        """Have the journal keep a lease as it is now."""
        self.entries.append(SaveLease(card_key=self.card.identity.key, lease=lease))

    def add(self, lease: Lease) -> None:
        """Put a new lease into the books."""
        self.card = self.card.with_lease(lease)
        self.keep(lease)

    def drop(self, lease: Lease) -> None:
        """Take a lease out of the books, and learn what it needed."""
        before = self.card.learned
        self.card = usage.learn(self.card.without_lease(lease.id), lease)
        self.entries.append(DropLease(card_key=self.card.identity.key, lease=lease.id))
        if self.card.learned is not before:
            self.entries.append(
                SaveUsage(
                    card_key=self.card.identity.key,
                    card=self.card.name,
                    engines={
                        name: (learned.runs, learned.peaks)
                        for name, learned in self.card.learned.items()
                    },
                )
            )

    def keep_baseline(self) -> None:
        """Have the journal keep the card's baseline."""
        if self.card.baseline is not None:
            self.entries.append(
                SaveBaseline(card_key=self.card.identity.key, baseline=self.card.baseline)
            )

    def happened(self, kind: str, *, name: str | None = None, why: str = "", **facts: Fact) -> None:
        """Tell an event that is about the card itself."""
        self.entries.append(
            Happened(kind=kind, card=self.card.name, name=name, why=why, facts=facts)
        )

    def lease_event(self, kind: str, lease: Lease, why: str = "", **facts: Fact) -> None:
        """Tell an event of a lease."""
        self.entries.append(
            Happened(
                kind=f"lease.{kind}",
                card=self.card.name,
                name=lease.name,
                lease=lease.id,
                why=why,
                facts=facts,
            )
        )

    def waiter_event(
        self, kind: str, waiter: Waiter, why: str = "", facts: Mapping[str, Fact] | None = None
    ) -> None:
        """Tell an event of a request."""
        self.entries.append(
            Happened(
                kind=f"lease.{kind}",
                card=self.card.name,
                name=waiter.terms.name,
                request=waiter.request,
                why=why,
                facts=facts or {},
            )
        )

    def swap(self, waiter: Waiter) -> None:
        """Put a waiter in the place of itself as it was."""
        self.card = self.card.with_waiter_changed(waiter)

    def measure_hand_off(self, waiter: Waiter) -> None:
        """Keep how long it took from the first order until this waiter was granted."""
        if waiter.ordered is None:
            return
        hand_offs = self.card.hand_offs.with_one(since(waiter.ordered, self.now))
        self.card = replace(self.card, hand_offs=hand_offs)
        self.entries.append(
            SaveHandOffs(
                card_key=self.card.identity.key, count=hand_offs.count, recent=hand_offs.recent
            )
        )

    def refuse(
        self,
        waiter: Waiter,
        code: Code,
        message: str,
        hint: str = "",
        *,
        waited_out: bool = False,
    ) -> None:
        """End a request without a grant."""
        self.card = self.card.without_waiter(waiter.request)
        self.waiter_event("refused", waiter, message, {"code": code.value})
        self.then.append(
            RequestRefused(
                request=waiter.request,
                code=code,
                message=message,
                hint=hint,
                waited_out=waited_out,
            )
        )

    def release(self, lease: Alive, why: str) -> None:
        """Take a lease for given back. Its memory counts until a reading shows it free (B3)."""
        free_by = after(self.now, self.card.settings.release_grace)
        measured = self.card.measured
        self.card = juggle.given(self.card, lease)
        had = MiB(0) if measured is None else measured.used.get(lease.id, MiB(0))
        self.change(lease, Releasing(held=lease.held, released=self.now, free_by=free_by, had=had))
        self.lease_event("released", lease, why)
        self.effects.append(ForgetTree(lease=lease.id, card=self.card.name))

    def watch_all(self) -> None:
        """Have every holder watched."""
        for lease in self.card.leases:
            if not isinstance(lease, Releasing | Stuck):
                self.watch(lease)

    def watch(self, lease: Lease) -> None:
        """Have the trees actor watch a holder's processes."""
        if lease.held.holder is not None:
            self.effects.append(
                WatchTree(
                    lease=lease.id,
                    name=lease.name,
                    card=self.card.name,
                    root=lease.held.holder,
                    key=lease.terms.key,
                    members=lease.held.members,
                    scope=lease.held.scope,
                    ends_with_root=lease.terms.wrapped,
                )
            )

    def ended(self, lease: Lease) -> None:
        """Tell the node that a lease has left the books."""
        self.then.append(LeaseEnded(lease=lease.id, card=self.card.name))

    def done(self, call: CallId, lease: Lease | None = None, state: str | None = None) -> None:
        """Answer an operation."""
        if lease is None:
            self.then.append(CallDone(call=call, on=self.card.name))
        else:
            self.then.append(
                CallDone(
                    call=call,
                    lease=lease.id,
                    state=state,
                    card=self.card.identity,
                    on=self.card.name,
                )
            )

    def failed(self, call: CallId, code: Code, message: str, hint: str = "") -> None:
        """Answer an operation that cannot be done."""
        self.then.append(
            CallFailed(call=call, code=code, message=message, hint=hint, on=self.card.name)
        )

    def order(self, lease: Lease, order: Order, why: str, *, at_once: bool = False) -> None:
        """Send a holder an order, once it is journaled."""
        self.then.append(
            OrderGiven(
                lease=lease.id,
                card=self.card.name,
                order=order,
                attempt=lease.held.attempt,
                grace=lease.terms.grace,
                why=why,
                now=at_once,
            )
        )

    def hear_by(self) -> Instant:
        """Return when an order given now must have been heard."""
        return after(self.now, HEAR_WITHIN)


def next_order(lease: Lease) -> Held:
    """Return what the lease carries once another order has been given to its holder."""
    return replace(lease.held, attempt=Attempt(lease.held.attempt + 1))
