"""The processes below the wrapper: every descendant is still there, for it adopts orphans."""

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


def below_this_process() -> "list[psutil.Process]":
    """Return everything below this process."""
    import psutil  # noqa: PLC0415 -- 8 ms that most runs never need

    return psutil.Process().children(recursive=True)


def signal_tree(number: int) -> None:
    """Signal everything below this process; psutil compares start times before it signals."""
    import psutil  # noqa: PLC0415 -- the same

    for process in below_this_process():
        with suppress(psutil.Error):
            process.send_signal(number)
