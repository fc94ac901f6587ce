"""Plays a story: lines of what happens, and below each what the card says to it.

    card total=24576 reserved=421
    chat runs 14000                   an engine asks, is granted, starts, loads, answers
    images asks 16000 priority=batch
    - images waits: chat …            what the card said (written by the player)
    status                            what each lease is now
    after 5                           five seconds pass, with their ticks and readings

Lines that start with `- ` are the expected words; `pytest --retell` writes them anew, and the diff
is there to be read. `#` starts a comment.
"""

from collections.abc import Callable, Iterator

from berth.actors.card.messages import (
    CardEffect,
    CloseCard,
    GrantLost,
    JournalState,
    Resumed,
    SetPace,
)
from berth.actors.card.state import Settings
from berth.actors.journal.messages import Happened, Record
from berth.actors.node.inbox import (
    CallDone,
    CallFailed,
    CardDescribed,
    LeaseEnded,
    OrderGiven,
    RequestGranted,
    RequestRefused,
    RequestStands,
    ShareAccepted,
    ShareDeclined,
    ShareInDoubt,
    ShareStands,
    Surveyed,
)
from berth.actors.trees.messages import EndTree, ForgetTree, KillTree, WakeHolder, WatchTree
from berth.ids import RequestId, lease_of
from berth.lease import state_word
from berth.readings import Unknown
from berth.units import MiB, Seconds, show_duration
from tests.cores.playing import Played

SAID = "- "


def retell(text: str) -> str:
    """Return the story with what the card says, as it is said now."""
    told: list[str] = []
    player = _Player()
    for line in text.splitlines():
        if line.startswith(SAID):
            continue
        told.append(line)
        happening = line.split("#")[0].split()
        if happening:
            told.extend(SAID + words for words in player.play(happening))
    return "\n".join(told) + "\n"


class _Player:
    """Plays one story. `Played` is made by its `card` line, or as it is by default."""

    def __init__(self) -> None:
        self._card: Played | None = None
        self.fast = False

    @property
    def card(self) -> Played:
        if self._card is None:
            self._card = Played()
        return self._card

    def play(self, words: list[str]) -> list[str]:
        first, rest = words[0], words[1:]
        if first == "card":
            self._set_up(rest)
            return []
        if first == "status":
            return [f"{lease.name} is {state_word(lease)}" for lease in self.card.card.leases]
        said_before = len(self.card.said)
        if first == "restart":
            self.fast = False  # so a new probe begins
        if first in _WORLD:
            _WORLD[first](self.card, rest)
        else:
            _DEEDS[rest[0]](self.card, first, rest[1:])
        return list(self._render(self.card.said[said_before:]))

    def _set_up(self, words: list[str]) -> None:
        figures, _ = _parse(words)
        grace = Seconds(float(figures.pop("release_grace", 30.0)))
        allow = frozenset(str(figures.pop("allow", "")).split(","))
        settings = Settings(release_grace=grace, allow=allow)
        total = int(figures.get("total", 24576))
        reserved = int(figures.get("reserved", 0))
        self._card = Played(settings=settings, total=total, reserved=reserved)

    def _render(self, said: list[CardEffect]) -> Iterator[str]:
        for effect in said:
            if isinstance(effect, Record):
                yield from self._render_record(effect)
            else:
                yield from self._render_one(effect)

    def _render_record(self, record: Record) -> Iterator[str]:
        for entry in record.entries:
            if isinstance(entry, Happened):
                who = f" {entry.name}" if entry.name else ""
                yield f"[{entry.kind}]{who}{': ' if entry.why else ''}{entry.why}"
        for rider in record.then:
            yield from self._render_one(rider)

    def _render_one(self, effect: CardEffect) -> Iterator[str]:
        match effect:
            case RequestGranted():
                cards = ", ".join(card.name for card in effect.cards)
                yield f"{self._who(effect.request)} is granted {cards}"
            case RequestRefused():
                yield f"{self._who(effect.request)} is refused ({effect.code}): {effect.message}"
            case RequestStands():
                place = f"no. {effect.position}"
                yield f"{self._who(effect.request)} waits, {place}: {effect.why}"
            case OrderGiven():
                name = self.card.by_lease(effect.lease).name
                now = ", at once" if effect.now else ""
                yield f"{name} is told: {effect.order} {effect.attempt}{now} ({effect.why})"
            case CallFailed():
                yield f"answered {effect.code}: {effect.message}"
            case WakeHolder():
                yield f"{self.card.by_lease(effect.lease).name} is woken"
            case KillTree():
                yield f"{self.card.by_lease(effect.lease).name}'s tree is killed"
            case EndTree():
                grace = show_duration(effect.grace)
                yield f"{self.card.by_lease(effect.lease).name}'s tree is ended, {grace} grace"
            case ShareStands() | ShareAccepted() | ShareDeclined() | ShareInDoubt():
                yield f"tells the node: {effect}"
            case SetPace():
                if effect.fast != self.fast:
                    yield f"readings {'fast' if effect.fast else 'slow'}"
                self.fast = effect.fast
            case (
                CallDone()
                | LeaseEnded()
                | CardDescribed()
                | Surveyed()
                | WatchTree()
                | ForgetTree()
                | Record()
            ):
                pass

    def _who(self, request: RequestId) -> str:
        return self.card.by_lease(lease_of(request)).name


def _parse(words: list[str]) -> tuple[dict[str, str], list[str]]:
    figures = dict(word.split("=", 1) for word in words if "=" in word)
    return figures, [word for word in words if "=" not in word]


_SECONDS = {"wait", "min_turn", "drain_wait", "grace", "start_limit", "waited", "hold_for"}


def _terms(words: list[str]) -> dict[str, object]:
    figures, flags = _parse(words)
    terms: dict[str, object] = {
        key: Seconds(float(value)) if key in _SECONDS else value for key, value in figures.items()
    }
    for flag in flags:
        terms |= {"job": {"boundary": False}, "script": {"wrapped": False}}.get(flag, {flag: True})
    return terms


def _mib(word: str) -> int | None:
    return None if word in {"whole", "nothing"} else int(word)


def _tree_gone(card: Played, name: str, _: list[str]) -> None:
    card.gone(name)


_WORLD: dict[str, Callable[[Played, list[str]], object]] = {
    "after": lambda card, words: card.later(float(words[0])),
    "blind": lambda card, words: card.later(float(words[0]), reading=False),
    "read": lambda card, _: card.read(),
    "restart": lambda card, words: card.restart(suspect="damaged" in words),
    "close": lambda card, _: card.hear(CloseCard()),
    "suspend": lambda card, _: card.hear(Resumed(slept=Seconds(600.0))),
    "journal": lambda card, words: card.hear(JournalState(writable=words == ["writable"])),
    "unreadable": lambda card, words: card.unread(Unknown(words[0])),
    "readable": lambda card, _: card.readable_again(),
    "unexplained": lambda card, words: setattr(card, "unexplained", MiB(int(words[0]))),
}
_DEEDS: dict[str, Callable[[Played, str, list[str]], object]] = {
    "runs": lambda card, name, words: card.runs(name, _mib(words[0]), **_terms(words[1:])),
    "asks": lambda card, name, words: card.asks(name, _mib(words[0]), **_terms(words[1:])),
    "started": lambda card, name, _: card.started(name),
    "says": lambda card, name, words: card.says(name, words[0], *map(int, words[1:])),
    "uses": lambda card, name, words: card.uses(name, _mib(words[0])),
    "gives-back": lambda card, name, _: card.gives_back(name),
    "gone": _tree_gone,
    "grant-lost": lambda card, name, _: card.hear(GrantLost(leases=(card.engines[name].lease,))),
    "withdraws": lambda card, name, _: card.withdraws(name),
    "reclaimed": lambda card, name, _: card.reclaim(name),
    "released": lambda card, name, _: card.release(name),
    "stopped": lambda card, name, words: card.stop(name, at_once="now" in words),
    "attaches": lambda card, name, words: card.attaches(name, *words),
}
