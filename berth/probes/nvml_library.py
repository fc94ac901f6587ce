"""Which libnvidia-ml.so.1 is NVIDIA's on this machine."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from berth.probes.procfs import PROC

LIBRARY_VARIABLE: Final = "BERTH_NVML_LIBRARY"
"""Names another libnvidia-ml.so.1 than the machine's; its SONAME must be that very name."""
WSL_LIBRARY: Final = Path("/usr/lib/wsl/lib/libnvidia-ml.so.1")


def library_to_load(
    environment: Mapping[str, str], proc: Path = PROC, wsl: Path = WSL_LIBRARY
) -> str | None:
    """Return the library to load before pynvml does, None when the machine's own will do.

    Under WSL a distribution's library answers for no card; the one that Windows lends does
    (ollama #1897).
    """
    named = environment.get(LIBRARY_VARIABLE)
    if named:
        return named
    return str(wsl) if runs_under_wsl(proc) and wsl.exists() else None


def runs_under_wsl(proc: Path = PROC) -> bool:
    """Tell whether this Linux is a guest of Windows."""
    try:
        return "microsoft" in (proc / "sys/kernel/osrelease").read_text().lower()
    except OSError:
        return False
