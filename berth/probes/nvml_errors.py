"""What NVML's return codes mean: for the card, and for the person who must do something.

The one table of them. Source: NVIDIA's NVML API guide; the numbers are part of its interface.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from berth.readings import Unknown, Unmeasured


class Code(IntEnum):
    """The return codes that Berth tells apart."""

    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    LIB_RM_VERSION_MISMATCH = 18
    ARGUMENT_VERSION_MISMATCH = 25
    DEPRECATED = 26
    NOT_READY = 27
    GPU_NOT_FOUND = 28
    UNKNOWN = 999


_MEANINGS: Final[Mapping[int, tuple[Unknown, str]]] = {
    Code.UNINITIALIZED: (
        Unknown.FAILED,
        "the session with the driver ended; it is opened anew at the next reading",
    ),
    Code.NO_PERMISSION: (
        Unknown.FAILED,
        "the driver refuses this user: berthd must be allowed to open /dev/nvidia*",
    ),
    Code.DRIVER_NOT_LOADED: (
        Unknown.NO_DRIVER,
        "NVIDIA's kernel module is not loaded: run modprobe nvidia, or install the driver again",
    ),
    Code.TIMEOUT: (Unknown.FAILED, "the driver did not answer in its own time; it is asked again"),
    Code.LIBRARY_NOT_FOUND: (
        Unknown.NO_DRIVER,
        "there is no libnvidia-ml.so.1 on this machine: install NVIDIA's driver",
    ),
    Code.GPU_IS_LOST: (
        Unknown.LOST,
        "the card fell off the bus (Xid 79; dmesg says when): only a reboot brings it back",
    ),
    Code.RESET_REQUIRED: (
        Unknown.RESET_REQUIRED,
        "the card needs a reset: end what runs on it, then nvidia-smi --gpu-reset, or reboot",
    ),
    Code.OPERATING_SYSTEM: (
        Unknown.FAILED,
        "the operating system stops the driver's call: a cgroup or container may hide the card",
    ),
    Code.LIB_RM_VERSION_MISMATCH: (
        Unknown.DRIVER_MISMATCH,
        (
            "the driver was upgraded while its old kernel module stayed loaded: reboot, or stop"
            " everything that uses the card (berthd too) and reload the module"
        ),
    ),
    Code.NOT_READY: (Unknown.FAILED, "the driver is not ready yet; it is asked again"),
    Code.GPU_NOT_FOUND: (
        Unknown.LOST,
        "the driver knows no such card any more: reboot, and look at dmesg if it stays away",
    ),
}
_ANY: Final = (Unknown.FAILED, "the driver cannot tell; it is asked again")

NOT_KNOWN_HERE: Final = frozenset(
    {
        Code.NOT_SUPPORTED,
        Code.NO_PERMISSION,
        Code.FUNCTION_NOT_FOUND,
        Code.ARGUMENT_VERSION_MISMATCH,
        Code.DEPRECATED,
    }
)
"""Codes by which a card or a library says that it will never answer this call."""

_SESSION_ENDED: Final = frozenset(
    {
        Code.UNINITIALIZED,
        Code.DRIVER_NOT_LOADED,
        Code.LIBRARY_NOT_FOUND,
        Code.LIB_RM_VERSION_MISMATCH,
    }
)
_LOST_AT_LOOK_UP: Final = frozenset({Code.NOT_FOUND, Code.INVALID_ARGUMENT, Code.UNKNOWN})


class DriverError(Exception):
    """NVML refused. `unmeasured` says what that means for the card, and what to do about it."""

    def __init__(self, code: int, unmeasured: Unmeasured) -> None:
        super().__init__(unmeasured.detail)
        self.code = code
        self.unmeasured = unmeasured

    @property
    def ends_session(self) -> bool:
        """Tell whether nothing can be asked any more until NVML is initialised anew."""
        return self.code in _SESSION_ENDED

    @property
    def ends_card(self) -> bool:
        """Tell whether the whole card is out of reach, not one figure of it."""
        return self.ends_session or self.unmeasured.why in {Unknown.LOST, Unknown.RESET_REQUIRED}


def translated(code: int, words: str, sentence: str = "") -> DriverError:
    """Return what a return code means. `words` are NVML's own; `sentence` replaces the table's."""
    why, known = _MEANINGS.get(code, _ANY)
    return DriverError(code, Unmeasured(why, f"{sentence or known} (NVML {code}: {words})"))


def at_look_up(error: DriverError) -> DriverError:
    """Return what an error means when it came from looking a card's handle up.

    A card that fell off the bus long ago is answered with Unknown Error (case HP04), one that the
    driver has dropped with Not Found.
    """
    if error.code not in _LOST_AT_LOOK_UP:
        return error
    detail = (
        "the driver has no handle for the card, as for one that fell off the bus: look at dmesg,"
        f" then reboot ({error.unmeasured.detail.rpartition(' (')[2]}"
    )
    return DriverError(error.code, Unmeasured(Unknown.LOST, detail))
