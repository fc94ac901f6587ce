"""What the supervisor hears and says."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from berth.actors.base import ActorDied, Pong
from berth.actors.journal.messages import Kept, KeptRead


class Care(StrEnum):
    """What becomes of an actor that died."""

    VITAL = "vital"
    """berthd cannot go on without its state: it ends, and the service manager starts it again."""
    LIMITED = "limited"
    """It is started again from the journal, three times in a minute, then closed."""
    ALWAYS = "always"
    """It has no state to lose: it is started again, after a pause that grows."""


class ChildStarted(msgspec.Struct, frozen=True, kw_only=True):
    """From the supervisor's own shell: a child is up, at that incarnation."""

    role: str
    incarnation: int


class SupervisorTick(msgspec.Struct, frozen=True, kw_only=True):
    """From the ticker: time has passed; `dead` are the roles whose thread is not alive any more."""

    dead: frozenset[str] = frozenset()


class StandDown(msgspec.Struct, frozen=True):
    """From the composition root: berthd is stopping; start nothing again."""


SupervisorInbox: TypeAlias = ActorDied | Pong | ChildStarted | KeptRead | SupervisorTick | StandDown


class PrepareChild(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: have the journal tell what was kept, so that the role can be started from it."""

    role: str
    incarnation: int


class StartChild(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: start that role again, as that incarnation, from what was kept.

    `set_aside` marks the events that have killed it twice: the new one must not handle them.
    """

    role: str
    incarnation: int
    kept: Kept
    set_aside: frozenset[str] = frozenset()


class AbandonChild(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: take a hung child out of its slot; its thread cannot be ended."""

    role: str


class CloseChild(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: leave that role empty; it has died too often."""

    role: str
    why: str


class PingChild(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: ask a child whether it still handles messages."""

    role: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: write down what broke an actor, and what it had decided before."""

    died: ActorDied


class GiveUp(msgspec.Struct, frozen=True, kw_only=True):
    """Shell: end berthd. Engines run on, and come back to the next one."""

    why: str


SupervisorEffect: TypeAlias = (
    PrepareChild | StartChild | AbandonChild | CloseChild | PingChild | Report | GiveUp
)
