"""The state file of the stub library, as ctypes sees it: a mirror of the structs in nvml_stub.c.

`load` in control.py compares the sizes, so a change on one side only is found at once.
"""

import ctypes
import re
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).with_name("nvml_stub.c")

MAX_CARDS: Final = 16
MAX_ROWS: Final = 128
MAX_SLICES: Final = 8
MAX_XIDS: Final = 32
MAX_TRACE: Final = 1024
MAX_FUNCTIONS: Final = 64
MAGIC: Final = 0x4C4D564E48545242
NONE: Final = 0xFFFFFFFF
NOT_AVAILABLE: Final = 2**64 - 1
"""What NVML writes for the memory of a process that it does not know (bytes)."""

FUNCTIONS: Final = tuple(re.findall(r"\bX\((nvml\w+)\)", SOURCE.read_text()))
"""The counted functions, in the order of nvml_stub.c."""


class RowStruct(ctypes.Structure):
    """One process on one card."""

    _fields_ = (
        ("used", ctypes.c_uint64),
        ("pid", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("slice", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
    )


class SliceStruct(ctypes.Structure):
    """One slice of a card that MIG cut."""

    _fields_ = (
        ("uuid", ctypes.c_char * 96),
        ("total", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("free", ctypes.c_uint64),
        ("instance", ctypes.c_uint32),
        ("compute_instance", ctypes.c_uint32),
    )


class CardStruct(ctypes.Structure):
    """One card."""

    _fields_ = (
        ("uuid", ctypes.c_char * 96),
        ("product", ctypes.c_char * 96),
        ("pci", ctypes.c_char * 32),
        ("total", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("free", ctypes.c_uint64),
        ("error", ctypes.c_uint32),
        ("handle_error", ctypes.c_uint32),
        ("memory_error", ctypes.c_uint32),
        ("delay_ms", ctypes.c_uint32),
        ("utilisation", ctypes.c_uint32),
        ("temperature", ctypes.c_uint32),
        ("power_mw", ctypes.c_uint32),
        ("power_limit_mw", ctypes.c_uint32),
        ("fan", ctypes.c_uint32),
        ("mig", ctypes.c_uint32),
        ("slice_count", ctypes.c_uint32),
        ("row_count", ctypes.c_uint32),
        ("xid_count", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
        ("xids", ctypes.c_uint64 * MAX_XIDS),
        ("slices", SliceStruct * MAX_SLICES),
        ("rows", RowStruct * MAX_ROWS),
    )


class StateStruct(ctypes.Structure):
    """The whole file."""

    _fields_ = (
        ("magic", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("turn", ctypes.c_uint64),
        ("init_error", ctypes.c_uint32),
        ("init_delay_ms", ctypes.c_uint32),
        ("session_error", ctypes.c_uint32),
        ("card_count", ctypes.c_uint32),
        ("driver_version", ctypes.c_char * 96),
        ("library_version", ctypes.c_char * 96),
        ("cuda_version", ctypes.c_int32),
        ("unused", ctypes.c_uint32),
        ("refusals", ctypes.c_uint32 * MAX_FUNCTIONS),
        ("calls", ctypes.c_uint64 * MAX_FUNCTIONS),
        ("trace_count", ctypes.c_uint64),
        ("trace", ctypes.c_uint32 * MAX_TRACE),
        ("cards", CardStruct * MAX_CARDS),
    )
