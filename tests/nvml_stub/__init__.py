"""A stand-in for NVIDIA's libnvidia-ml.so.1, and the hand that says what it answers."""

from tests.nvml_stub.control import (
    FOREVER,
    GIB,
    LIBRARY_NAME,
    LIBRARY_VARIABLE,
    MIB,
    STATE_VARIABLE,
    Kind,
    NoCompilerError,
    Nvml,
    Row,
    Slice,
    StubCard,
    StubDriver,
    build,
    load,
)

__all__ = [
    "FOREVER",
    "GIB",
    "LIBRARY_NAME",
    "LIBRARY_VARIABLE",
    "MIB",
    "STATE_VARIABLE",
    "Kind",
    "NoCompilerError",
    "Nvml",
    "Row",
    "Slice",
    "StubCard",
    "StubDriver",
    "build",
    "load",
]
