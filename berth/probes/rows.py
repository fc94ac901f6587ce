"""From a driver's rows, a pid and its memory, to processes that Berth knows.

What cannot change is remembered: a pid with the same inode in /proc is the same process. Its
name, parents and scope can change (it starts another program, its parent dies), so they are
looked at again after as long as it has been known, at least 1 s and at most 30 s.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from berth.probes.procfs import (
    PROC,
    ProcessFacts,
    ancestors,
    program_name,
    read_process,
    scope_of,
)
from berth.readings import UNTOLD, GpuProcess, Unmeasured
from berth.units import Instant, MiB, used_mib

NAMESPACE_OF_THE_HOST: Final = 4026531836
"""The inode of the first pid namespace (PROC_PID_INIT_INO of the kernel)."""

_SOONEST: Final = 1.0
_LATEST: Final = 30.0


def sees_host_pids(proc: Path = PROC) -> bool:
    """Tell whether the pids of a driver, which are the host's, mean anything here.

    In a container with a pid namespace of its own they name nobody, or somebody else. Where the
    kernel does not say, there is one namespace only.
    """
    try:
        text = str((proc / "self/ns/pid").readlink())
    except OSError:
        return True
    return text == f"pid:[{NAMESPACE_OF_THE_HOST}]"


def merge_row(found: dict[int, int | None], pid: int, used: int | None) -> None:
    """Put a driver's row (bytes, None for not told) beside those found so far, once for each pid.

    A process that stands in two lists has the same memory in both: the most counts, not the sum.
    """
    known = found.get(pid)
    if known is None or (used is not None and used > known):
        found[pid] = used


class _Known(msgspec.Struct):
    """A process seen before: its inode in /proc, its last row, when to look at it again."""

    inode: int
    facts: ProcessFacts
    used: int | None
    row: GpuProcess
    first: Instant
    again: Instant


class KnownProcesses:
    """The processes on one card, remembered from one reading to the next."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._folder = f"{proc}/"
        self._known: dict[int, _Known] = {}

    def rows(self, used: Mapping[int, int | None], now: Instant) -> tuple[GpuProcess, ...]:
        """Return who holds that memory (bytes, None when not told), in the driver's order.

        Pids that do not exist are left out: what they hold is nobody's, so it counts as
        unexplained. Such are processes that just ended, and what a driver of another version than
        its library writes (case HP08).
        """
        known: dict[int, _Known] = {}
        for pid, size in used.items():
            found = self._find(pid, size, now)
            if found is not None:
                known[pid] = found
        self._known = known
        return tuple([process.row for process in known.values()])

    def _find(self, pid: int, used: int | None, now: Instant) -> _Known | None:
        try:
            inode = os.stat(self._folder + str(pid)).st_ino  # noqa: PTH116 -- half the time
        except OSError:
            return None
        known = self._known.get(pid)
        if known is None or known.inode != inode:
            return self._meet(pid, inode, used, now)
        if now >= known.again:
            return self._meet_again(known, used, now)
        if known.used != used:
            known.used = used
            known.row = replace(known.row, used=_size(used))
        return known

    def _meet(self, pid: int, inode: int, used: int | None, now: Instant) -> _Known | None:
        facts = read_process(pid, self._proc)
        if facts is None:
            return None
        row = GpuProcess(
            process=facts.process,
            name=program_name(pid, self._proc),
            used=_size(used),
            ancestors=ancestors(pid, self._proc),
            scope=scope_of(pid, self._proc),
        )
        return _Known(inode, facts, used, row, now, Instant(now + _SOONEST))

    def _meet_again(self, known: _Known, used: int | None, now: Instant) -> _Known | None:
        """Look at a process anew. The longer line of parents stands: an orphan's is cut short."""
        pid, row = known.facts.process.pid, known.row
        facts = read_process(pid, self._proc)
        if facts is None or facts.process != known.facts.process:
            return self._meet(pid, known.inode, used, now)
        if facts != known.facts:
            parents = ancestors(pid, self._proc)
            longer = parents if len(parents) >= len(row.ancestors) else row.ancestors
            row = replace(row, name=program_name(pid, self._proc), ancestors=longer)
        row = replace(row, used=_size(used), scope=scope_of(pid, self._proc))
        again = now + min(max(now - known.first, _SOONEST), _LATEST)
        return _Known(known.inode, facts, used, row, known.first, Instant(again))


def _size(used: int | None) -> MiB | Unmeasured:
    return UNTOLD if used is None else used_mib(used)
