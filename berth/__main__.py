"""The `berth` command.

Nothing is imported before it is needed: a driver worker is spawned from this module too, and must
stay small.
"""

import os
import sys


def main() -> None:
    """Run the command line and exit with its status."""
    from berth.streams import end_streams, open_missing_streams  # noqa: PLC0415 -- see above

    open_missing_streams()  # before anything else can take their numbers
    from berth.cli.app import run_cli  # noqa: PLC0415

    status = run_cli(sys.argv[1:])
    end_streams()
    _leave_hung_children(status)
    sys.exit(status)


def _leave_hung_children(status: int) -> None:
    """End at once if a child is left that nothing ends: it hangs in a driver's call.

    multiprocessing would wait for it at the exit, for ever.
    """
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.active_children():
        os._exit(status)


if __name__ == "__main__":
    main()
