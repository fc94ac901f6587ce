"""Writes what the stub library answers: cards, their processes, their troubles.

    library = build(folder)                                 # once; needs gcc
    driver = StubDriver(folder / "state", StubCard(), StubCard(total=8 * GIB))
    environment[LIBRARY_VARIABLE] = str(library)            # Berth's own probe honours it
    environment[STATE_VARIABLE] = str(driver.path)          # the library reads it at nvmlInit
    driver.change(1, error=Nvml.LOST)                       # seen by every process at once

pynvml itself knows no variable: `load(library)` in its process comes first (glibc takes a library
whose SONAME it has loaded already), or LD_LIBRARY_PATH names the folder (gpustat, nvitop).
"""

import ctypes
import mmap
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

from tests.nvml_stub.layout import (
    FUNCTIONS,
    MAGIC,
    MAX_TRACE,
    MAX_XIDS,
    NONE,
    NOT_AVAILABLE,
    SOURCE,
    CardStruct,
    RowStruct,
    SliceStruct,
    StateStruct,
)

LIBRARY_NAME: Final = "libnvidia-ml.so.1"
LIBRARY_VARIABLE: Final = "BERTH_NVML_LIBRARY"
STATE_VARIABLE: Final = "BERTH_NVML_STUB_STATE"
MIB: Final = 2**20
GIB: Final = 2**30
FOREVER: Final = NONE
"""As a delay in milliseconds: the call does not come back until the delay is changed."""


class NoCompilerError(Exception):
    """There is no C compiler, or it failed; the text is the reason for a skip."""


class Nvml(IntEnum):
    """Return codes of NVML."""

    OK = 0
    UNINITIALIZED = 1
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    NO_DRIVER = 9
    FUNCTION_NOT_FOUND = 13
    LOST = 15
    RESET_REQUIRED = 16
    MISMATCH = 18
    WRONG_VERSION = 25
    NOT_READY = 27
    UNKNOWN = 999


class Kind(IntEnum):
    """The list in which the driver names a process."""

    COMPUTE = 0
    GRAPHICS = 1
    MPS = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One process. `used` in bytes, None where the driver does not know."""

    pid: int
    used: int | None
    kind: Kind = Kind.COMPUTE
    slice: int | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of a card that MIG cut. Memory in bytes."""

    uuid: str
    total: int
    used: int = 0
    instance: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StubCard:
    """One card. Memory in bytes; empty `uuid` and `pci` are made up from the index.

    `used` leaves `reserved` out, as NVML's second version does; what is neither is free, unless
    `free` says otherwise. A figure that is None is not supported. `mig` None is a card without it.
    """

    total: int = 24 * GIB
    reserved: int = 400 * MIB
    used: int = 0
    free: int | None = None
    uuid: str = ""
    pci: str = ""
    product: str = "NVIDIA GeForce RTX 3090"
    rows: tuple[Row, ...] = ()
    error: int = Nvml.OK
    handle_error: int = Nvml.OK
    memory_error: int = Nvml.OK
    delay_ms: int = 0
    utilisation: int | None = 7
    temperature: int | None = 41
    power_mw: int | None = 31_250
    power_limit_mw: int | None = 350_000
    fan: int | None = 30
    mig: bool | None = None
    slices: tuple[Slice, ...] = ()


def build(folder: Path) -> Path:
    """Compile the library into a folder, unless it is there, and return its path.

    Raises:
        NoCompilerError: there is no gcc, or it failed; the text says which.
    """
    library = folder / LIBRARY_NAME
    if library.exists() and library.stat().st_mtime >= SOURCE.stat().st_mtime:
        return library
    compiler = shutil.which("gcc")
    if compiler is None:
        raise NoCompilerError("the stub of NVIDIA's library needs gcc, and there is none")
    flags = ["-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-fvisibility=hidden"]
    command = [compiler, *flags, f"-Wl,-soname,{LIBRARY_NAME}", "-o", str(library), str(SOURCE)]
    done = subprocess.run(
        [*command, "-lpthread"], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0:
        raise NoCompilerError(f"gcc cannot build the stub of NVIDIA's library: {done.stderr}")
    return library


def load(library: Path) -> ctypes.CDLL:
    """Load the library into this process, so that pynvml gets it and no other."""
    loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    size = ctypes.c_uint64.in_dll(loaded, "berth_stub_state_size").value
    assert size == ctypes.sizeof(StateStruct), "layout.py and nvml_stub.c differ"
    return loaded


class StubDriver:
    """What the library answers, in a file that any number of processes look at."""

    def __init__(self, path: Path, *cards: StubCard, driver_version: str = "580.95") -> None:
        self.path = path
        with path.open("w+b") as file:
            file.truncate(ctypes.sizeof(StateStruct))
            self._map = mmap.mmap(file.fileno(), 0)
        self._state: Any = StateStruct.from_buffer(self._map)
        self.cards = cards
        with self._writing() as state:
            state.driver_version = driver_version.encode()
            state.library_version = f"13.{driver_version}".encode()
            state.cuda_version = 13000
            state.card_count = len(cards)
            for index, card in enumerate(cards):
                _write_card(state.cards[index], index, card)
            state.size = ctypes.sizeof(StateStruct)
            state.magic = MAGIC

    def change(self, index: int, **changes: Any) -> StubCard:
        """Change fields of one card (`StubCard`), all at once, and return it."""
        card = replace(self.cards[index], **changes)
        self.cards = (*self.cards[:index], card, *self.cards[index + 1 :])
        with self._writing() as state:
            _write_card(state.cards[index], index, card)
        return card

    def fail_init(self, code: int, *, delay_ms: int = 0) -> None:
        """Have nvmlInit answer with `code`, after a delay."""
        with self._writing() as state:
            state.init_error = code
            state.init_delay_ms = delay_ms

    def fail_sessions(self, code: int) -> None:
        """Have every call of an open session answer with `code`: the driver went away."""
        with self._writing() as state:
            state.session_error = code

    def refuse(self, function: str, code: int) -> None:
        """Have one function answer with `code`; FUNCTION_NOT_FOUND is a library without it."""
        with self._writing() as state:
            state.refusals[FUNCTIONS.index(function)] = code

    def throw_xid(self, index: int, code: int) -> None:
        """Have a card throw an Xid; everyone who listens is told once."""
        with self._writing() as state:
            card = state.cards[index]
            card.xids[card.xid_count % MAX_XIDS] = code
            card.xid_count += 1

    def calls(self, function: str | None = None) -> int:
        """Return how often a function was called since the start; all of them without a name."""
        if function is None:
            return int(sum(self._state.calls))
        return int(self._state.calls[FUNCTIONS.index(function)])

    def trace(self, since: int = 0) -> list[str]:
        """Return the functions called, in order, from call number `since` on (the last 1024)."""
        last = int(self._state.trace_count)
        first = max(since, last - MAX_TRACE)
        return [FUNCTIONS[self._state.trace[at % MAX_TRACE] >> 8] for at in range(first, last)]

    @contextmanager
    def _writing(self) -> Iterator[Any]:
        """Make every change in the block visible at once."""
        self._state.turn += 1
        try:
            yield self._state
        finally:
            self._state.turn += 1


def _write_card(to: Any, index: int, card: StubCard) -> None:
    to.uuid = (card.uuid or f"GPU-aaaaaaaa-0000-0000-0000-{index + 1:012x}").encode()
    to.pci = (card.pci or f"00000000:{0x41 + index:02X}:00.0").encode()
    to.product = card.product.encode()
    to.total, to.reserved, to.used = card.total, card.reserved, card.used
    left = card.total - card.reserved - card.used
    to.free = left if card.free is None else card.free
    for field in ("error", "handle_error", "memory_error", "delay_ms"):
        setattr(to, field, getattr(card, field))
    for field in ("utilisation", "temperature", "power_mw", "power_limit_mw", "fan"):
        value = getattr(card, field)
        setattr(to, field, NONE if value is None else value)
    to.mig = NONE if card.mig is None else int(card.mig)
    _write_lists(to, card)


def _write_lists(to: CardStruct, card: StubCard) -> None:
    to.slice_count, to.row_count = len(card.slices), len(card.rows)
    for at, part in enumerate(card.slices):
        free = part.total - part.used
        to.slices[at] = SliceStruct(
            part.uuid.encode(), part.total, 0, part.used, free, part.instance, 0
        )
    for at, row in enumerate(card.rows):
        used = NOT_AVAILABLE if row.used is None else row.used
        where = NONE if row.slice is None else row.slice
        to.rows[at] = RowStruct(used, row.pid & NONE, row.kind, where, 0)
