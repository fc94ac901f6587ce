"""NVML through pynvml: the one place where the binding is met.

pynvml has no types and raises return codes; from here come our own types, and `DriverError`
(nvml_errors.py). Only a driver worker imports this module: a call into a driver may hang (B1).
"""

import ctypes
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pynvml

from berth.cards import normal_pci
from berth.probes.nvml_errors import (
    NOT_KNOWN_HERE,
    Code,
    DriverError,
    at_look_up,
    translated,
)
from berth.probes.nvml_library import library_to_load
from berth.probes.nvml_rows import RowBuffer
from berth.probes.procfs import PROC
from berth.probes.rows import merge_row
from berth.readings import UNTOLD, Figure, Health

_KERNEL_MODULE: Final = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+\.\d[\d.]*)")
_MOST_XIDS: Final = 16
_MIG_ON: Final = 1
_MEMORY_V2: Final = "nvmlDeviceGetMemoryInfo_v2"
_PROCESS_LISTS: Final = tuple(
    (f"nvmlDeviceGet{kind}RunningProcesses_v3", f"nvmlDeviceGet{kind}RunningProcesses_v2")
    for kind in ("Compute", "Graphics", "MPSCompute")
)


class Description(msgspec.Struct, frozen=True):
    """Which card a handle stands for. `pci` as sysfs writes it, empty when it is not told."""

    uuid: str
    pci: str
    product: str


class CardMemory(msgspec.Struct, frozen=True):
    """A card's memory in bytes. What the driver reserved is neither free nor a process's."""

    total: int
    free: int
    reserved: int


def _ask(function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 -- untyped binding
    """Call NVML.

    Raises:
        DriverError: it refused.
    """
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        raise translated(error.value, str(error)) from None
    except pynvml.NVMLLibraryMismatchError as error:  # no NVMLError, though it stands for one
        raise translated(Code.FUNCTION_NOT_FOUND, str(error)) from None


def _look_up(function: Callable[..., Any], wanted: int | str) -> Any:  # noqa: ANN401 -- untyped binding
    try:
        return _ask(function, wanted)
    except DriverError as error:
        raise at_look_up(error) from None


def open_session(proc: Path = PROC) -> None:
    """Initialise NVML; each success needs its own `close_session`.

    Raises:
        DriverError: there is no library or no driver, or they do not match.
    """
    path = library_to_load(os.environ, proc)
    if path is not None:
        try:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            sentence = f"{path} cannot be loaded: install NVIDIA's driver"
            raise translated(Code.LIBRARY_NOT_FOUND, str(error), sentence) from None
    try:
        _ask(pynvml.nvmlInit)
    except DriverError as error:
        if error.code == Code.LIB_RM_VERSION_MISMATCH:
            words = f"Driver/library version mismatch; {_versions(proc)}"
            raise translated(error.code, words) from None
        raise


def close_session() -> None:
    """Give NVML back; one that is broken already is no trouble."""
    with suppress(DriverError):
        _ask(pynvml.nvmlShutdown)


def _versions(proc: Path) -> str:
    """Return the versions that do not match, as far as they can be told."""
    library, module = "unknown", "unknown"
    with suppress(DriverError):
        # `13.580.95` is the driver's version behind the major number of CUDA.
        library = str(_ask(pynvml.nvmlSystemGetNVMLVersion)).partition(".")[2]
    with suppress(OSError):
        found = _KERNEL_MODULE.search((proc / "driver/nvidia/version").read_text())
        module = module if found is None else found[1]
    return f"library {library}, kernel module {module}"


def card_count() -> int:
    """Return how many cards the driver knows, those included that do not answer.

    Raises:
        DriverError: the session is broken.
    """
    return int(_ask(pynvml.nvmlDeviceGetCount))


class OpenCard:
    """One card of an open session. What it does not know is asked once and remembered.

    Every method but `close` and `xids` may raise `DriverError`.
    """

    def __init__(self, *, index: int | None = None, pci: str = "", uuid: str = "") -> None:
        """Look the card up. By its address no other card is woken or initialised."""
        if index is not None:
            self._handle = _look_up(pynvml.nvmlDeviceGetHandleByIndex, index)
        elif pci:
            self._handle = _look_up(pynvml.nvmlDeviceGetHandleByPciBusId, pci)
        else:
            self._handle = _look_up(pynvml.nvmlDeviceGetHandleByUUID, uuid)
        self._unknown: set[str] = set()
        self._rows = RowBuffer()
        self._events: object | None = None

    def describe(self) -> Description:
        """Return which card this is."""
        address = _ask(pynvml.nvmlDeviceGetPciInfo, self._handle).busId
        written = address.decode() if isinstance(address, bytes) else str(address)
        product = str(_ask(pynvml.nvmlDeviceGetName, self._handle))
        return Description(self.uuid(), normal_pci(written) or "", product)

    def uuid(self) -> str:
        """Return the card's UUID."""
        return str(_ask(pynvml.nvmlDeviceGetUUID, self._handle))

    def slices(self) -> int | None:
        """Return into how many slices MIG has cut the card, None when it has not."""
        mode = self._first("nvmlDeviceGetMigMode")
        if mode is None or mode[0] != _MIG_ON:
            return None
        found = 0
        for index in range(int(_ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, self._handle))):
            with suppress(DriverError):
                _ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, self._handle, index)
                found += 1
        return found

    def processes(self) -> dict[int, int | None]:
        """Return the bytes that each pid holds, None where the driver does not know.

        A process may stand in several lists with the same memory: the most counts, not the sum.
        """
        found: dict[int, int | None] = {}
        for names in _PROCESS_LISTS:
            if self._fill(names):
                for pid, used in self._rows.rows():
                    merge_row(found, pid, used)
        return found

    def _fill(self, names: tuple[str, ...]) -> bool:
        """Fetch one list of processes; tell whether the card has it."""
        for name in names:
            function = getattr(pynvml.nvmlLib, name, None)
            if name in self._unknown or function is None:
                continue
            code = self._rows.fill(function, self._handle)
            if code == pynvml.NVML_SUCCESS:
                return True
            if code not in NOT_KNOWN_HERE:
                raise translated(code, str(pynvml.NVMLError(code)))
            self._unknown.add(name)
        return False

    def memory(self) -> CardMemory | None:
        """Return the card's memory, None when it has none of its own (unified memory)."""
        if _MEMORY_V2 not in self._unknown:
            try:
                told = _ask(pynvml.nvmlDeviceGetMemoryInfo, self._handle, pynvml.nvmlMemory_v2)
                return CardMemory(told.total, told.free, told.reserved)
            except DriverError as error:
                if error.code not in NOT_KNOWN_HERE:
                    raise
                self._unknown.add(_MEMORY_V2)
        try:
            told = _ask(pynvml.nvmlDeviceGetMemoryInfo, self._handle)
        except DriverError as error:
            if error.code != Code.NOT_SUPPORTED:
                raise
            return None
        return CardMemory(told.total, told.free, 0)

    def health(self) -> Health:
        """Return load and heat, each unmeasured where the card does not tell it."""
        core = pynvml.NVML_TEMPERATURE_GPU
        heat = ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV")
        limit = ("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit")
        return Health(
            utilisation_pct=self._figure(_busy, "nvmlDeviceGetUtilizationRates"),
            temperature_c=self._figure(float, *heat, of=(core,)),
            power_w=self._figure(_watts, "nvmlDeviceGetPowerUsage"),
            power_limit_w=self._figure(_watts, *limit),
            fan_pct=self._figure(float, "nvmlDeviceGetFanSpeed"),
        )

    def listen(self) -> None:
        """Begin to listen for Xids, where that is supported (not under WSL, nor in most guests)."""
        try:
            self._events = _ask(pynvml.nvmlEventSetCreate)
            kind = pynvml.nvmlEventTypeXidCriticalError
            _ask(pynvml.nvmlDeviceRegisterEvents, self._handle, kind, self._events)
        except DriverError:
            self.close()

    def xids(self) -> list[int]:
        """Return the Xids thrown since the last call, at most 16 of them. Never waits."""
        codes: list[int] = []
        while self._events is not None and len(codes) < _MOST_XIDS:
            try:
                codes.append(int(_ask(pynvml.nvmlEventSetWait, self._events, 0).eventData))
            except DriverError:  # Timeout: there are no more
                break
        return codes

    def close(self) -> None:
        """Stop listening for Xids."""
        if self._events is not None:
            with suppress(DriverError):
                _ask(pynvml.nvmlEventSetFree, self._events)
            self._events = None

    def _first(self, *names: str, of: tuple[int, ...] = ()) -> Any:  # noqa: ANN401 -- untyped binding
        """Ask the first of these functions that the library and the card know, None for none."""
        for name in names:
            function = getattr(pynvml, name, None)  # an older nvidia-ml-py may lack one
            if name in self._unknown or function is None:
                continue
            try:
                return _ask(function, self._handle, *of)
            except DriverError as error:
                if error.code not in NOT_KNOWN_HERE:
                    raise
                self._unknown.add(name)
        return None

    def _figure(
        self, read: Callable[[Any], float], *names: str, of: tuple[int, ...] = ()
    ) -> Figure:
        """Return one figure; only trouble with the whole card is raised."""
        try:
            told = self._first(*names, of=of)
        except DriverError as error:
            if error.ends_card:
                raise
            return error.unmeasured
        return UNTOLD if told is None else float(read(told))


def _busy(rates: Any) -> float:  # noqa: ANN401 -- untyped binding
    return float(rates.gpu)


def _watts(milliwatts: float) -> float:
    return milliwatts / 1000
