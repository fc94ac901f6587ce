"""What the trees actor hears and says: it watches the processes of holders, and ends them.

A wrapper is a child subreaper, so all that its engine starts stays below it; when the wrapper
itself is gone, what it left is known by the tree last seen, by its scope, and by the mark that
every process of a run carries in its environment.
"""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from berth.ids import CardName, Key, LeaseId, ProcessId
from berth.units import Seconds


class WatchTree(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: watch this holder. `members` are what it is known to have started so far.

    `ends_with_root`: what is left of the tree is killed when the root is gone (a wrapped run); a
    script's children are its own.
    """

    lease: LeaseId
    name: str
    card: CardName
    root: ProcessId
    key: Key
    members: frozenset[ProcessId]
    scope: str | None
    ends_with_root: bool


class ForgetTree(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: the lease is over there."""

    lease: LeaseId
    card: CardName


class WakeHolder(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: the holder does not answer; SIGCONT it, in case it is stopped."""

    lease: LeaseId


class EndTree(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: SIGTERM what is below the holder, and after `grace` SIGKILL all of it.

    A script (`ends_with_root` False in its watch) gets SIGTERM alone, itself only.
    """

    lease: LeaseId
    grace: Seconds


class KillTree(msgspec.Struct, frozen=True, kw_only=True):
    """From a card: the lease was given up. SIGKILL its holder and all that it is known to have.

    A script (not `wrapped`) has no mark and no scope that its own children could be known by.
    """

    lease: LeaseId
    card: CardName
    root: ProcessId
    key: Key
    members: frozenset[ProcessId]
    scope: str | None
    wrapped: bool


class RootExited(msgspec.Struct, frozen=True, kw_only=True):
    """From the exit watch: a holder's process has ended."""

    lease: LeaseId
    root: ProcessId


class LeftoversKilled(msgspec.Struct, frozen=True, kw_only=True):
    """From the actor's own shell: what a dead wrapper left was killed."""

    lease: LeaseId


class TreesSeen(msgspec.Struct, frozen=True, kw_only=True):
    """From the actor's own shell: what lives below each holder now."""

    members: Mapping[LeaseId, frozenset[ProcessId]]


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """To every card that a lease is not on: its holder's processes, none once it is over (B6)."""

    lease: LeaseId
    name: str
    processes: frozenset[ProcessId]
    scope: str | None = None


class TellElsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """From a card that starts: whose processes are there that hold a lease on other cards?"""

    card: CardName


class TreesTick(msgspec.Struct, frozen=True):
    """From the ticker: time has passed."""


TreesInbox: TypeAlias = (
    WatchTree
    | ForgetTree
    | WakeHolder
    | EndTree
    | KillTree
    | RootExited
    | LeftoversKilled
    | TreesSeen
    | TellElsewhere
    | TreesTick
)
