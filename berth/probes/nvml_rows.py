"""NVML's process rows, read in one call where pynvml takes two and builds an object for each row.

nvmlProcessInfo_v2_t, and _v3, which is the same:
    unsigned pid; unsigned long long usedGpuMemory; unsigned gpuInstanceId, computeInstanceId
"""

import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import Final

from berth.probes.nvml_errors import Code

_ROW: Final = struct.Struct("@IQII")
_ROOM: Final = 128
_NOT_AVAILABLE: Final = 2**64 - 1
"""NVML_VALUE_NOT_AVAILABLE: under Windows the system manages the memory, and does not tell."""


class RowBuffer:
    """Room for the rows of one list, kept from call to call. It grows when a card has more."""

    def __init__(self) -> None:
        self._count = ctypes.c_uint()
        self._rows = ctypes.create_string_buffer(_ROOM * _ROW.size)

    def fill(self, function: Callable[..., int], handle: object) -> int:
        """Call an NVML function of the family …RunningProcesses, and return its code."""
        while True:
            room = len(self._rows) // _ROW.size
            self._count.value = room
            code = function(handle, ctypes.byref(self._count), self._rows)
            if code != Code.INSUFFICIENT_SIZE:
                return code
            # Twice what it asks for: more may have come by the next call.
            self._rows = ctypes.create_string_buffer(2 * max(room, self._count.value) * _ROW.size)

    def rows(self) -> Iterator[tuple[int, int | None]]:
        """Return the pids and their bytes, None where the driver does not know them."""
        end = self._count.value * _ROW.size
        for pid, used, _, _ in _ROW.iter_unpack(memoryview(self._rows)[:end]):
            yield pid, None if used == _NOT_AVAILABLE else used
