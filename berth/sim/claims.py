"""A process's claim on a simulated card: a file that others never see half written."""

import os
from contextlib import suppress
from pathlib import Path

from berth.errors import BerthError, Code, Exit


def sim_folder(given: str | None) -> Path:
    """Return the folder of the simulated cards: as given, or as `BERTH_SIM_DIR` says.

    Raises:
        BerthError: neither is there.
    """
    folder = given or os.environ.get("BERTH_SIM_DIR")
    if not folder:
        raise BerthError(
            Code.BAD_REQUEST,
            "which simulated cards?",
            hint="name their folder with --sim DIR or BERTH_SIM_DIR",
            exit_status=Exit.USAGE,
        )
    return Path(folder)


class Claim:
    """Memory that one process claims on one card."""

    def __init__(self, folder: Path, card: int, pid: int | None = None) -> None:
        self._directory = folder / "claims" / str(card)
        self._pid = os.getpid() if pid is None else pid

    def set(self, mib: int) -> None:
        """Claim that many MiB, in the place of what was claimed before.

        Raises:
            BerthError: the claim cannot be written.
        """
        beside = self._directory / f".{self._pid}.new"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            beside.write_text(str(mib))
            beside.rename(self._directory / str(self._pid))
        except OSError as error:
            message = f"the claim cannot be written in {self._directory}: {error.strerror}"
            raise BerthError(Code.BAD_REQUEST, message, exit_status=Exit.USAGE) from error

    def drop(self) -> None:
        """Claim nothing any more."""
        with suppress(FileNotFoundError):
            (self._directory / str(self._pid)).unlink()
