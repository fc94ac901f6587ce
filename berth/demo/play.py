"""What happens when, from a seed: the same seed is the same load, with Berth or without.

Pure: no clock, no randomness but the seed's. Times are in seconds from the begin.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

CYCLE_S: Final = 30.0
"""After that long the guests come again."""


class Act(Enum):
    """What a cue lets happen."""

    IMAGES = "images"
    HOLD = "hold"
    GIANT = "giant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """Something that happens once: jobs for the image engine, a hold, chats with the giant.

    `spans` are the lengths of the jobs or of the hold (seconds), or of the replies (tokens).
    """

    at: float
    act: Act
    spans: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who chats with an engine from `begins` on: thinks, asks, reads, and again."""

    engine: str
    number: int
    begins: float


PEOPLE: Final = (
    Person(engine="chat", number=1, begins=0.2),
    Person(engine="chat", number=2, begins=0.6),
    Person(engine="coder", number=1, begins=2.0),
    Person(engine="coder", number=2, begins=2.6),
)

_GUESTS: Final = (
    (3.0, Act.IMAGES, 3),
    (5.0, Act.HOLD, 1),
    (12.0, Act.GIANT, 2),
    (17.0, Act.IMAGES, 3),
    (20.0, Act.HOLD, 1),
    (23.0, Act.IMAGES, 2),
    (26.0, Act.HOLD, 1),
)
"""When in a cycle, who, how many jobs or replies."""

_LENGTHS: Final = {Act.IMAGES: (0.5, 1.0), Act.HOLD: (1.5, 2.5), Act.GIANT: (20.0, 45.0)}


def plan_cues(seed: int, seconds: float) -> tuple[Cue, ...]:
    """Return what happens in a play of that length. A short one is a whole one, only faster."""
    chance = random.Random(f"{seed} guests")  # noqa: S311 -- a play, no secret
    pace = min(1.0, seconds / CYCLE_S)
    cues = []
    for cycle in range(int(seconds // CYCLE_S) + 1):
        for begins, act, number in _GUESTS:
            at = cycle * CYCLE_S + begins * pace + chance.uniform(0.0, 0.5)
            spans = tuple(round(chance.uniform(*_LENGTHS[act]), 2) for _ in range(number))
            if at < seconds:
                cues.append(Cue(at=round(at, 2), act=act, spans=spans))
    return tuple(cues)


def chats_of(person: Person, seed: int) -> Iterator[tuple[float, int]]:
    """Return without end how long a person thinks (seconds), and how long the reply is (tokens)."""
    chance = random.Random(f"{seed} {person.engine} {person.number}")  # noqa: S311 -- the same
    while True:
        yield round(chance.uniform(0.3, 1.0), 2), chance.randint(12, 30)
