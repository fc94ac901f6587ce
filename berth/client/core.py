"""Theory of operation of a script's lease.

   Asking ──granted──▶ Starting ──heard──▶ Holding ──give way, give back──▶ Returning
     ▲  │                                                                     │   │
     │  └─ given up ─▶ Withdrawing ──▶ Over ◀── gives back ───────────────────┘   │
     └──────────────────────────── comes back ────────────────────────────────────┘

1. A script asks under a key of its own. Sent again after a break, the request finds its place or
   its lease again (S6).
2. A grant is started at once, and is the script's only when berthd has heard that it was: one that
   was slept through may have been given to somebody else.
3. An order (`drain`, `stop`) is heard and noted. Nothing more happens to the script by itself: it
   gives way at its own boundary.
4. What was given back is given back again until berthd has heard it. A script that gave way then
   asks anew, under another key, for as long as it wants to wait.
5. berthd away: a holder goes on and attaches when it is back. A waiter that was heard waits on. One
   that was never heard gives up after 10 s, at once when no berthd ran since boot (R4).
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from berth.client.messages import (
    Connected,
    Disconnected,
    Done,
    Failure,
    GiveBack,
    GiveWay,
    Granted,
    Ordered,
    Passed,
    Queued,
    Refused,
    Send,
    Served,
    TenancyEffect,
    TenancyEvent,
    Warn,
)
from berth.client.state import (
    RETURN_AGAIN,
    WITHDRAW_WITHIN,
    Asking,
    Holding,
    Over,
    Phase,
    Returning,
    Starting,
    Tenancy,
    Withdrawing,
)
from berth.errors import Code
from berth.lease import START_WITHIN
from berth.units import Instant, Seconds, after, show_duration, since
from berth.wire import START_MARGIN, TRY_FOR

_Decision: TypeAlias = tuple[Tenancy, tuple[TenancyEffect, ...]]


def decide(tenancy: Tenancy, event: TenancyEvent, now: Instant) -> _Decision:
    """Return the lease after `event`, and what to do."""
    step = _Step(tenancy, now)
    step.take(event)
    return step.tenancy, tuple(step.effects)


class _Step(msgspec.Struct):
    """Collects what one event changes and does."""

    tenancy: Tenancy
    now: Instant
    effects: list[TenancyEffect] = msgspec.field(default_factory=list)

    def take(self, event: TenancyEvent) -> None:
        attach_answered = isinstance(event, Done | Refused) and event.op == "attach"
        if attach_answered or isinstance(event, Disconnected):
            self.tenancy = replace(self.tenancy, attaching=False)
        match event:
            case Connected():
                self._on_connected()
            case Disconnected():
                if self.tenancy.away_since is None:
                    self.tenancy = replace(self.tenancy, away_since=self.now)
            case Queued():
                self._on_queued(event)
            case Granted():
                self._on_granted(event)
            case Done():
                self._on_done(event)
            case Refused():
                self._on_refused(event)
            case Ordered():
                self._on_ordered(event)
            case GiveWay():
                self._on_give_way(event)
            case GiveBack():
                self._on_give_back()
            case Served():
                if isinstance(self.tenancy.phase, Holding):
                    self._word(self.tenancy.phase.lease, "served", 0)
            case Passed():
                self._on_passed()
            case _:
                assert_never(event)

    # --- what it does -----------------------------------------------------------------------

    def _send(self, op: str, fields: Mapping[str, Any]) -> None:
        self.effects.append(Send(op=op, fields=fields))

    def _word(self, lease: str, word: str, attempt: int, why: str = "") -> None:
        self._send("lease.answer", {"lease": lease, "attempt": attempt, "state": word, "why": why})

    def _go(self, phase: Phase) -> None:
        self.tenancy = replace(self.tenancy, phase=phase)

    def _fail(self, code: str, message: str, *, waited_out: bool = False) -> None:
        self._go(Over(failure=Failure(code=code, message=message, waited_out=waited_out)))

    def _terms(self, wait: Seconds) -> dict[str, Any]:
        wish = self.tenancy.wish
        key = f"{wish.key}-{self.tenancy.asks}"
        return {**wish.terms, "key": key, "wait_s": wait}

    def _ask(self, since_: Instant, wait: Seconds) -> None:
        waited = since(since_, self.now)
        self._send("lease.request", {**self._terms(wait), "waited_s": waited})

    def _ask_anew(self, since_: Instant, wait: Seconds) -> None:
        """Ask under another key: the last one names a lease that is over."""
        self.tenancy = replace(self.tenancy, asks=self.tenancy.asks + 1)
        self._go(Asking(since=since_, wait=wait, heard=True))
        self._ask(since_, wait)

    # --- berthd comes and goes --------------------------------------------------------------

    def _on_connected(self) -> None:
        self.tenancy = replace(self.tenancy, away_since=None)
        match self.tenancy.phase:
            case Asking(since=asked, wait=wait) | Starting(since=asked, wait=wait):
                self._ask(asked, wait)
            case Holding():
                self._attach(self.tenancy.phase)
            case Returning(lease=lease):
                self._send("lease.release", {"lease": lease})
            case Withdrawing():
                self._go(Over())
            case Over():
                pass

    def _attach(self, held: Holding) -> None:
        state = {
            "lease": held.lease or None,
            "state": "draining" if held.order else "running",
            "attempt": held.attempt,
            "pids": [self.tenancy.wish.pid],
            "started_s": since(held.since, self.now),
        }
        self.tenancy = replace(self.tenancy, attaching=True)
        self._send("attach", {**self._terms(self.tenancy.wish.wait), **state})

    # --- from asking to holding -------------------------------------------------------------

    def _on_queued(self, event: Queued) -> None:
        match self.tenancy.phase:
            case Asking(since=asked, wait=wait) | Starting(since=asked, wait=wait):
                self._go(Asking(since=asked, wait=wait, heard=True, queued=event))
            case Withdrawing(asked=False) as withdrawing:
                self._go(replace(withdrawing, asked=True))
                self._send("withdraw", {"request": event.request})
            case _:
                pass

    def _on_granted(self, event: Granted) -> None:
        match self.tenancy.phase:
            case Asking(since=asked, wait=wait) | Starting(since=asked, wait=wait):
                self._start(event, asked, wait)
            case Withdrawing():
                self._return(event.lease)
            case Holding() | Returning() | Over():
                pass

    def _start(self, event: Granted, asked: Instant, wait: Seconds) -> None:
        if event.start_by is not None and self.now >= event.start_by - START_MARGIN:
            self._send("lease.release", {"lease": event.lease})
            self._ask_anew(asked, wait)
            return
        heard_by = after(self.now, START_WITHIN)
        self._go(Starting(since=asked, wait=wait, granted=event, heard_by=heard_by))
        pids = [self.tenancy.wish.pid]
        self._send("lease.started", {"lease": event.lease, "pids": pids})

    # --- answers ----------------------------------------------------------------------------

    def _on_done(self, event: Done) -> None:
        match self.tenancy.phase:
            case Starting(granted=granted) if event.op == "lease.started":
                if event.lease == granted.lease:
                    self._hold(granted)
            case Holding() if event.op == "attach":
                self._go(replace(self.tenancy.phase, lease=event.lease))
            case Returning(lease=lease) as returning if event.op == "attach" and (
                event.lease != lease
            ):  # given back while it was attached, under a number that it had no longer
                self._go(replace(returning, lease=event.lease))
                self._send("lease.release", {"lease": event.lease})
            case Returning() if event.op == "lease.release":
                self._returned(event.lease)
            case Withdrawing() if event.op == "withdraw":
                self._go(Over())
            case _:
                pass

    def _hold(self, granted: Granted) -> None:
        self._go(
            Holding(lease=granted.lease, name=granted.name, cards=granted.cards, since=self.now)
        )

    def _returned(self, lease: str) -> None:
        phase = self.tenancy.phase
        if not isinstance(phase, Returning) or phase.lease != lease:
            return
        if phase.comes_back is None:
            self._go(Over(failure=phase.failure))
        else:
            self._ask_anew(self.now, phase.comes_back)

    def _on_refused(self, event: Refused) -> None:
        match event.op, self.tenancy.phase:
            case "lease.request", Asking() | Starting():
                self._go(Over(failure=event.failure))
            case "lease.started", Starting(granted=granted, since=asked, wait=wait):
                if granted.lease != event.lease:
                    pass
                elif event.failure.code == Code.NOT_FOUND:  # not started in time, so taken back
                    self._ask_anew(asked, wait)
                else:
                    self._go(Over(failure=event.failure))
            case "lease.release", Returning():
                if self.tenancy.attaching:
                    pass  # its new number comes with the answer to that
                elif event.failure.code == Code.INTERNAL:
                    self._send("lease.release", {"lease": event.lease})
                else:  # nobody knows of it: it is as good as heard
                    self._returned(event.lease)
            case "attach", Holding(lease=lease) as held if (
                event.failure.code == Code.NOT_YOURS and lease == event.lease != ""
            ):  # a berthd that lost its journal has given that number to another
                self._go(replace(held, lease=""))
                self._attach(self.tenancy.phase)
            case "attach", Holding(lease=lease):
                text = f"{lease} could not be attached again: {event.failure.message}"
                self.effects.append(Warn(text=text))
            case "withdraw" | "lease.request", Withdrawing():
                self._go(Over())
            case _:
                pass

    # --- orders -----------------------------------------------------------------------------

    def _on_ordered(self, event: Ordered) -> None:
        if event.order == "ping":
            self._send("pong", {"lease": event.lease})
            return
        match self.tenancy.phase:
            case Holding(lease=lease) if lease == event.lease:
                self._on_holders_order(self.tenancy.phase, event)
            case Returning(lease=lease) if lease == event.lease:
                self._send("lease.release", {"lease": lease})
            case _:
                pass

    def _on_holders_order(self, held: Holding, event: Ordered) -> None:
        match event.order:
            case "attach":
                self._attach(held)
            case "drain" | "stop":
                order = "stop" if "stop" in {event.order, held.order} else "drain"
                self._go(replace(held, order=order, attempt=event.attempt, why=event.why))
                self._word(held.lease, "heard", event.attempt)
            case "continue":
                self._go(replace(held, order="", attempt=event.attempt, why=""))
                self._word(held.lease, "heard", event.attempt)
            case _:
                why = f"a script does not {event.order}"
                self._word(held.lease, "failed", event.attempt, why)

    # --- what the script does ---------------------------------------------------------------

    def _on_give_way(self, event: GiveWay) -> None:
        phase = self.tenancy.phase
        if not isinstance(phase, Holding) or not phase.order:
            return
        self._word(phase.lease, "boundary", phase.attempt)
        if phase.order == "drain":
            self._return(phase.lease, comes_back=event.wait)
            return
        message = f"{phase.name} was {phase.why or 'stopped by a person'}"
        self._return(phase.lease, failure=Failure(code=Code.WITHDRAWN, message=message))

    def _on_give_back(self) -> None:
        match self.tenancy.phase:
            case Asking(queued=Queued(request=request)):
                self._go(Withdrawing(leave_by=after(self.now, WITHDRAW_WITHIN), asked=True))
                self._send("withdraw", {"request": request})
            case Asking() if self.tenancy.away_since is None:
                self._go(Withdrawing(leave_by=after(self.now, WITHDRAW_WITHIN)))
            case Asking():
                self._go(Over())
            case Starting(granted=granted):
                self._return(granted.lease)
            case Holding(lease=lease):
                self._return(lease)
            case Returning() as returning:
                self._go(replace(returning, comes_back=None))
            case Withdrawing() | Over():
                pass

    def _return(
        self, lease: str, comes_back: Seconds | None = None, failure: Failure | None = None
    ) -> None:
        self._go(
            Returning(
                lease=lease,
                since=self.now,
                again_at=after(self.now, RETURN_AGAIN),
                comes_back=comes_back,
                failure=failure,
            )
        )
        self._send("lease.release", {"lease": lease})

    # --- time -------------------------------------------------------------------------------

    def _on_passed(self) -> None:
        match self.tenancy.phase:
            case Asking() as asking:
                self._on_still_asking(asking)
            case Starting(granted=granted, heard_by=at) if self.now >= at:
                self._send("lease.release", {"lease": granted.lease})
                self._fail(Code.NO_BERTH, "berthd granted a lease and has not been heard since")
            case Returning() as returning if self.now >= returning.again_at:
                self._on_unheard(returning)
            case Withdrawing(leave_by=at) if self.now >= at:
                self._go(Over())
            case _:
                pass

    def _on_still_asking(self, asking: Asking) -> None:
        away = self.tenancy.away_since
        if away is None:
            return
        try_for = TRY_FOR if self.tenancy.wish.berthd_seen else Seconds(0.0)
        if not asking.heard and since(away, self.now) >= try_for:
            self._fail(Code.NO_BERTH, "no berthd answers")
        elif since(asking.since, self.now) >= asking.wait:
            waited = show_duration(asking.wait)
            message = f"not granted in {waited}; berthd does not answer"
            self._fail(Code.NO_BERTH, message, waited_out=True)

    def _on_unheard(self, returning: Returning) -> None:
        waits = returning.comes_back
        if waits is not None and since(returning.since, self.now) >= waits:
            message = f"not granted again in {show_duration(waits)}; berthd does not answer"
            self._fail(Code.NO_BERTH, message, waited_out=True)
            return
        self._go(replace(returning, again_at=after(self.now, RETURN_AGAIN)))
        self._send("lease.release", {"lease": returning.lease})
