"""The demo as a whole: who is started when, what is measured, and how all of it is ended."""

import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from berth.demo.chat import Outcome
from berth.demo.crew import BROWSER, CARDS, CHATS, GIANT, IMAGES, TRAIN, Role, stowaway_command
from berth.demo.engine import ChatEngine
from berth.demo.following import Follower
from berth.demo.hand_offs import HandOff
from berth.demo.jobs import ImageEngine, Job
from berth.demo.people import Chatter, let_finish
from berth.demo.play import PEOPLE, Act, Cue, chats_of, plan_cues
from berth.demo.sampler import ROOM_MIB, Sampler
from berth.demo.stage import Stage
from berth.demo.tally import Summary, Tally
from berth.errors import BerthError
from berth.units import MiB, show_gib

FINISH_WITHIN: Final = 5.0
"""How long the replies in flight have to end when the time is over (seconds)."""

_LOOK_EVERY: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is played: for how long (seconds), from which seed, with Berth or without."""

    seconds: float
    seed: int
    without: bool


class Audience(Protocol):
    """Who watches: a board, lines, or nobody. Told and shown events from several threads."""

    def tell(self, at: float, text: str) -> None:
        """Hear what happens, `at` seconds from the begin."""

    def event(self, at: float, event: dict[str, Any], hand_off: HandOff | None) -> None:
        """Hear an event of berthd, and the hand-off that it completes."""

    def look(self, show: "Show") -> None:
        """Look at it all: ten times a second, on one thread."""

    def close(self) -> None:
        """See the last of it, when all is over."""


class Show:
    """One play. Make it, `play` it once; `stop` ends it, and may be called in a signal handler."""

    def __init__(self, choice: Choice, audience: Audience) -> None:
        self.choice = choice
        self.tally = Tally(CARDS)
        self.stage = Stage(with_berth=not choice.without)
        self._audience = audience
        self._over = threading.Event()
        self._interrupted = False
        self._begun = time.monotonic()
        self.sampler = Sampler(self.stage.folder)
        self._follower = Follower(self.stage.socket, self._hear)
        self._engines = {
            role.name: ChatEngine(self.stage, role, self._over, self._on_failed) for role in CHATS
        }
        self._train = Job(self.stage, TRAIN, self._over, self._on_failed)
        self._images = ImageEngine(self.stage, self._over, self._report, self._on_failed)
        self._people: list[Chatter] = []

    @property
    def at(self) -> float:
        """How many seconds of the play are over."""
        return time.monotonic() - self._begun

    def stop(self) -> None:
        """End it now, whatever is in flight."""
        self._interrupted = True
        self._over.set()

    def play(self) -> Summary:
        """Play it to its end, end everything that was started, and return what was measured.

        Raises:
            BerthError: berthd does not come up.
        """
        with ExitStack() as ending:
            ending.callback(self.stage.close)
            ending.callback(self._follower.stop)
            ending.callback(self.sampler.stop)
            ending.callback(self._over.set)
            ending.callback(self.tally.freeze)
            self._set_up()
            seconds = self._run()
        return self._summary(seconds)

    def counted(self) -> Summary:
        """Return what was measured until now."""
        return self._summary(self.at)

    def _summary(self, seconds: float) -> Summary:
        return self.tally.summary(
            seconds=seconds,
            seed=self.choice.seed,
            without=self.choice.without,
            interrupted=self._interrupted,
            overfull=self.sampler.times_overfull,
        )

    def _set_up(self) -> None:
        if self.stage.with_berth:
            self.stage.start_berthd(self._over.is_set)
            self._follower.start()
        self.sampler.start()
        self._begun = time.monotonic()
        self._tell(_opening(self.choice))
        self.stage.start(BROWSER.name, stowaway_command())
        for keeper in (*self._engines.values(), self._train):
            keeper.start()

    def _run(self) -> float:
        """Let everything happen in its time; return how long it took (seconds)."""
        cues = list(plan_cues(self.choice.seed, self.choice.seconds))
        people = sorted(PEOPLE, key=lambda person: person.begins)
        while not self._over.wait(_LOOK_EVERY) and self.at < self.choice.seconds:
            while people and people[0].begins <= self.at:
                person = people.pop(0)
                self._let_in(person.engine, chats_of(person, self.choice.seed))
            while cues and cues[0].at <= self.at:
                self._act(cues.pop(0))
            self._audience.look(self)
        self._over.set()
        for engine in self._engines.values():
            engine.wake()
        self._images.finish()
        let_finish((*self._people, self._images), FINISH_WITHIN, lambda: self._interrupted)
        return self.at

    # --- what happens ---------------------------------------------------------------------------

    def _let_in(self, engine: str, chats: Iterable[tuple[float, int]]) -> None:
        person = Chatter(self._engines[engine], chats, self._over, self._report)
        self._people.append(person)
        person.start()

    def _act(self, cue: Cue) -> None:
        match cue.act:
            case Act.IMAGES:
                self._tell(f"{len(cue.spans)} jobs for {IMAGES.name}")
                self._images.give(cue.spans)
            case Act.GIANT:
                self._tell(f"{len(cue.spans)} people ask {GIANT.name}, which spans both cards")
                for number, tokens in enumerate(cue.spans):
                    self._let_in(GIANT.name, [(0.1 * number, int(tokens))])
            case Act.HOLD:
                self._hold(cue.spans[0])

    def _hold(self, seconds: float) -> None:
        """A person takes the second card; without Berth there is nobody to ask for it."""
        if not self.stage.with_berth:
            return
        self._tell(f"a person takes gpu1 for {seconds:.1f}s")
        with suppress(BerthError):
            self.stage.ask("hold", cards=["gpu1"], for_s=seconds, reason="a person", wait=False)

    # --- what is heard --------------------------------------------------------------------------

    def _tell(self, text: str) -> None:
        self._audience.tell(self.at, text)

    def _hear(self, event: dict[str, Any]) -> None:
        hand_off = self.tally.hear(event)
        engine = self._engines.get(event["name"] or "")
        if engine is not None:
            engine.hear(event["kind"])
        self._audience.event(self.at, event, hand_off)

    def _report(self, name: str, outcome: Outcome) -> None:
        if self.tally.count(outcome) and outcome is Outcome.CUT:
            self._tell(f"a request to {name} was CUT")

    def _on_failed(self, role: Role) -> None:
        """Hear that an engine died: it found its card overfull."""
        if self._over.is_set():
            return
        self.tally.count_out_of_memory(role.cards[0])
        card = role.cards[0]
        self._tell(
            f"{role.name} loads {show_gib(MiB(role.mib))} GiB beside what is on gpu{card} already:"
            " out of memory"
        )


def _opening(choice: Choice) -> str:
    """Return what is about to be seen."""
    room = show_gib(MiB(ROOM_MIB))
    begin = f"{CARDS} simulated cards of {room} GiB, seed {choice.seed}; "
    return begin + ("no Berth: who is wanted starts" if choice.without else "a berthd of its own")
