"""A card that is played with: named engines, memory that they use, time that passes.

Used by the tests of the card's core, by the stories and by the properties. Engines are called by
name; what an engine uses shows in the next reading.
"""

from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from berth.actors.card.core import decide
from berth.actors.card.messages import (
    AttachHolder,
    CardEffect,
    CardInbox,
    CardRead,
    CardUnread,
    HolderAnswered,
    HolderGone,
    HolderStarted,
    HolderWord,
    ReclaimLease,
    ReleaseLease,
    Resumed,
    SeekLease,
    SetPace,
    StopLease,
    Tick,
    WithdrawRequest,
)
from berth.actors.card.recovery import restored
from berth.actors.card.state import Card, Settings
from berth.actors.card.view import describe
from berth.actors.journal.messages import (
    DropLease,
    Happened,
    Kept,
    Record,
    SaveBaseline,
    SaveHandOffs,
    SaveLease,
)
from berth.actors.node.inbox import CallId, OrderGiven, RequestGranted, RequestRefused, ToNode
from berth.errors import Code
from berth.ids import Attempt, CardName, Key, LeaseId, ProcessId, RequestId, lease_of, request_of
from berth.lease import WHOLE_CARD, Ask, Lease, Priority, Terms
from berth.readings import CardIdentity, GpuProcess, Reading, Unknown, Unmeasured
from berth.units import Instant, MiB, Seconds, after
from berth.views import CardStatus
from tests.cores.judge import Judge

GPU0 = CardIdentity(name=CardName("gpu0"), index=0, uuid="GPU-0", pci="0000:01:00.0")


@dataclass
class Engine:
    """One engine of a played card: its process, its request, and what it uses."""

    name: str
    process: ProcessId
    request: RequestId
    terms: Terms
    ask: Ask
    uses: int | None = None
    attempt: Attempt = Attempt(0)

    @property
    def lease(self) -> LeaseId:
        return lease_of(self.request)


@dataclass
class Played:
    """A card under play. `said` is all that the last events made the card say."""

    total: int = 24576
    reserved: int = 0
    settings: Settings = field(default_factory=Settings)
    now: Instant = Instant(1000.0)
    engines: dict[str, Engine] = field(default_factory=dict)
    strangers: dict[str, tuple[ProcessId, int]] = field(default_factory=dict)
    unexplained: int = 0
    said: list[CardEffect] = field(default_factory=list)
    kept: dict[LeaseId, Lease] = field(default_factory=dict)
    kept_baseline: MiB | None = None
    kept_hand_offs: SaveHandOffs | None = None
    fast: bool = False
    readable: bool = True
    journal_broken: bool = False
    numbers: int = 0
    card: Card = field(init=False)
    judge: Judge = field(init=False)

    def __post_init__(self) -> None:
        self.card = Card(identity=GPU0, settings=self.settings)
        self.judge = Judge(self.card)
        self.read()

    # --- what happens -----------------------------------------------------------------------

    def hear(self, event: CardInbox) -> list[CardEffect]:
        """Let the card hear an event; return what it says to it."""
        if isinstance(event, Resumed):
            self.judge.resumed = self.now
        self.card, effects = decide(self.card, event, self.now)
        trouble = self.judge.look(self.card, event, effects, self.now)
        assert not trouble, trouble
        said = list(effects)
        self.said.extend(said)
        for effect in said:
            self._follow(effect)
        return said

    def _follow(self, effect: CardEffect) -> None:
        if isinstance(effect, SetPace):
            self.fast = effect.fast
        elif isinstance(effect, OrderGiven):
            self.by_lease(effect.lease).attempt = effect.attempt
        elif isinstance(effect, Record):
            for entry in effect.entries:
                if isinstance(entry, SaveLease):
                    self.kept[entry.lease.id] = entry.lease
                elif isinstance(entry, DropLease):
                    self.kept.pop(entry.lease, None)
                elif isinstance(entry, SaveBaseline):
                    self.kept_baseline = entry.baseline
                elif isinstance(entry, SaveHandOffs):
                    self.kept_hand_offs = entry
            for rider in effect.then:
                self._follow(rider)

    def asks(self, name: str, mib: int | None, **terms: Any) -> list[CardEffect]:
        """Let a new engine of that name ask for memory; None is the whole card."""
        self.numbers += 1
        waited = Seconds(terms.pop("waited", 0.0))
        behind = terms.pop("behind", "")
        others = tuple(CardName(card) for card in terms.pop("others", ()))
        priority = Priority[terms.pop("priority", "interactive").upper()]
        defaults: dict[str, Any] = {
            "boundary": True,
            "wrapped": True,
            "key": Key(f"key-{self.numbers}"),
        }
        is_hold = priority is Priority.HOLD
        engine = Engine(
            name=name,
            process=ProcessId(100 + self.numbers, 1),
            request=RequestId(f"r{self.numbers}"),
            terms=Terms(name=name, priority=priority, **(defaults | terms)),
            ask=WHOLE_CARD if mib is None else MiB(mib),
        )
        self.engines[name] = engine
        return self.hear(
            SeekLease(
                request=engine.request,
                terms=engine.terms,
                ask=engine.ask,
                holder=None if is_hold else engine.process,
                cards=(self.card.name, *others),
                arrived=Instant(self.now - waited),
                behind=behind,
            )
        )

    def started(self, name: str, scope: str | None = None) -> list[CardEffect]:
        engine = self.engines[name]
        return self.hear(
            HolderStarted(
                call=self._call(),
                lease=engine.lease,
                peer=engine.process,
                members=frozenset(),
                scope=scope,
            )
        )

    def says(
        self, name: str, word: str, attempt: int | None = None, *, lingers: bool = False
    ) -> list[CardEffect]:
        """Let a holder say a word, to its latest order unless told otherwise.

        With "released" its memory is gone, unless it `lingers`.
        """
        engine = self.engines[name]
        if word == "released" and not lingers:
            engine.uses = None
        return self.hear(
            HolderAnswered(
                call=self._call(),
                lease=engine.lease,
                peer=engine.process,
                attempt=engine.attempt if attempt is None else Attempt(attempt),
                word=HolderWord(word),
            )
        )

    def speaks_for(self, name: str, peer: ProcessId, word: HolderWord) -> list[CardEffect]:
        """Let another process say a word of a lease, tell that it started, and give it back."""
        lease = self.engines[name].lease
        call, nobody = self._call(), frozenset[ProcessId]()
        said = self.hear(
            HolderAnswered(call=call, lease=lease, peer=peer, attempt=Attempt(99), word=word)
        )
        said += self.hear(
            HolderStarted(call=call, lease=lease, peer=peer, members=nobody, scope="berth-x.scope")
        )
        return said + self.hear(ReleaseLease(call=call, lease=lease, peer=peer))

    def runs(self, name: str, mib: int | None, **terms: Any) -> None:
        """Have an engine asked, granted, started, ready and served, using what it asked for."""
        self.asks(name, mib, **terms)
        assert self.granted(name), f"{name} was not granted"
        self.started(name)
        self.uses(name, mib if mib is not None else self.total - self.reserved)
        self.says(name, "ready")
        self.says(name, "served")
        self.read()

    def uses(self, name: str, mib: int | None) -> None:
        """Change what an engine, or a stranger of that name, uses; it shows when read."""
        if name in self.engines:
            self.engines[name].uses = mib
        elif mib is None:
            self.strangers.pop(name, None)
        else:
            process = self.strangers.get(name, (ProcessId(900 + len(self.strangers), 1), 0))[0]
            self.strangers[name] = (process, mib)

    def gives_back(self, name: str) -> list[CardEffect]:
        """Let a holder release its lease of its own accord, its memory still in use until read."""
        engine = self.engines[name]
        return self.hear(ReleaseLease(call=self._call(), lease=engine.lease, peer=engine.process))

    def gone(self, name: str, *, lingers: bool = False) -> list[CardEffect]:
        """Let a holder's process be gone, and its memory, unless it `lingers`."""
        if not lingers:
            self.engines[name].uses = None
        return self.hear(HolderGone(lease=self.engines[name].lease))

    def withdraws(self, name: str) -> list[CardEffect]:
        engine = self.engines[name]
        return self.hear(WithdrawRequest(request=engine.request, why="its client is gone"))

    def stop(self, name: str, *, at_once: bool = False) -> list[CardEffect]:
        lease = self.engines[name].lease
        return self.hear(StopLease(call=self._call(), lease=lease, at_once=at_once))

    def reclaim(self, name: str) -> list[CardEffect]:
        """Let a person give a lease up."""
        return self.hear(ReclaimLease(call=self._call(), lease=self.engines[name].lease))

    def release(self, name: str) -> list[CardEffect]:
        """Let a person give a hold back."""
        lease = self.engines[name].lease
        return self.hear(ReleaseLease(call=self._call(), lease=lease, peer=None))

    def attaches(self, name: str, state: str = "running", **changes: Any) -> list[CardEffect]:
        engine = self.engines[name]
        self.numbers += 1
        event = AttachHolder(
            call=self._call(),
            request=RequestId(f"r{self.numbers}"),
            lease=engine.lease,
            terms=engine.terms,
            ask=engine.ask,
            holder=engine.process,
            cards=(self.card.name,),
            keys=(),
            state=state,
            attempt=engine.attempt,
            members=frozenset(),
            ran_for=Seconds(10.0),
        )
        event = replace(event, **changes)
        if event.lease is None:
            engine.request = event.request
        return self.hear(event)

    def restart(self, *, suspect: bool = False) -> None:
        """Let berthd be killed and start again, from what the journal keeps.

        `suspect`: the journal could not be read, and was set aside.
        """
        if suspect:
            self.kept.clear()
        baselines = {} if self.kept_baseline is None else {GPU0.key: self.kept_baseline}
        kept = Kept(
            leases={GPU0.key: tuple(self.kept.values())},
            baselines=baselines,
            hand_offs={} if self.kept_hand_offs is None else {GPU0.key: self.kept_hand_offs},
            suspect="it was damaged" if suspect else "",
        )
        self.card = restored(GPU0, self.settings, kept, self.now)
        self.judge.start_again(self.card)

    def read(self) -> list[CardEffect]:
        """Take a reading now, and let the card have it."""
        return self.hear(CardRead(reading=self.look())) if self.readable else []

    def look(self) -> Reading:
        """Take a reading now, without telling the card yet."""
        rows = [
            GpuProcess(process=engine.process, name=engine.name, used=MiB(engine.uses))
            for engine in self.engines.values()
            if engine.uses is not None
        ]
        rows += [
            GpuProcess(process=process, name=name, used=MiB(mib))
            for name, (process, mib) in self.strangers.items()
        ]
        used = self.reserved + self.unexplained + sum(_size(row) for row in rows)
        return Reading(
            taken=self.now,
            total=MiB(self.total),
            used=MiB(min(self.total, used)),
            reserved=MiB(self.reserved),
            processes=tuple(rows),
        )

    def unread(self, why: Unknown = Unknown.LOST) -> list[CardEffect]:
        """Let the card become unreadable."""
        self.readable = False
        return self.hear(CardUnread(why=Unmeasured(why)))

    def readable_again(self) -> list[CardEffect]:
        self.readable = True
        return self.read()

    def later(self, seconds: float, step: float = 0.5, *, reading: bool = True) -> list[CardEffect]:
        """Let time pass, with its ticks and readings; return what the card says meanwhile."""
        said: list[CardEffect] = []
        ends = after(self.now, Seconds(seconds))
        since_reading = 0.0
        while self.now < ends:
            self.now = after(self.now, Seconds(min(step, ends - self.now)))
            since_reading += step
            if reading and (self.fast or since_reading >= 2.0):
                since_reading = 0.0
                said += self.read()
            said += self.hear(Tick())
        return said

    # --- what is seen -----------------------------------------------------------------------

    def by_lease(self, lease: LeaseId) -> Engine:
        request = request_of(lease)
        return next(engine for engine in self.engines.values() if engine.request == request)

    def shown(self) -> CardStatus:
        """Return the card as status shows it."""
        return describe(self.card, self.now)

    def lease(self, name: str) -> Lease | None:
        return self.card.lease(self.engines[name].lease)

    def granted(self, name: str) -> bool:
        """Tell whether the engine holds a lease on the card now."""
        return self.lease(name) is not None

    def waits(self, name: str) -> bool:
        return self.card.waiter(self.engines[name].request) is not None

    def blockers(self, name: str) -> list[tuple[str, str]]:
        """Return who is in a waiter's way, and how."""
        waiter = self.card.waiter(self.engines[name].request)
        assert waiter is not None, f"{name} does not wait"
        return [(blocker.who, blocker.how.value) for blocker in waiter.blockers or ()]

    def orders(self, name: str) -> list[str]:
        """Return every order the engine was given so far."""
        lease = self.engines[name].lease
        return [
            message.order.value
            for message in self.to_node()
            if isinstance(message, OrderGiven) and message.lease == lease
        ]

    def grants(self) -> list[str]:
        """Return the names granted so far, in order."""
        granted = [m.request for m in self.to_node() if isinstance(m, RequestGranted)]
        return [self._name(request) for request in granted]

    def refusal(self, name: str) -> Code | None:
        refused = self.refused(name)
        return None if refused is None else refused.code

    def refused(self, name: str) -> RequestRefused | None:
        """Return the refusal of a request, None when it was not refused."""
        request = self.engines[name].request
        found = [
            message
            for message in self.to_node()
            if isinstance(message, RequestRefused) and message.request == request
        ]
        assert len(found) <= 1, f"{name} was refused {len(found)} times"
        return found[0] if found else None

    def to_node(self) -> list[ToNode]:
        """Return all that was said to the node so far, riding on a record or not."""
        messages: list[ToNode] = []
        for effect in self.said:
            if isinstance(effect, Record):
                messages.extend(effect.then)
            elif isinstance(effect, ToNode):
                messages.append(effect)
        return messages

    def events(self, kind: str) -> list[Happened]:
        """Return the events of that kind so far."""
        records = [effect for effect in self.said if isinstance(effect, Record)]
        entries = [entry for record in records for entry in record.entries]
        return [e for e in entries if isinstance(e, Happened) and e.kind == kind]

    def _name(self, request: RequestId) -> str:
        return next(e.name for e in self.engines.values() if e.request == request)

    def _call(self) -> CallId:
        self.numbers += 1
        return CallId(number=self.numbers)


def _size(row: GpuProcess) -> int:
    return 0 if isinstance(row.used, Unmeasured) else row.used
