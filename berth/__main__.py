"""The `berth` command.

Nothing is imported before it is needed: a driver worker is spawned from this module too, and must
stay small.
"""

import sys


def main() -> None:
    """Run the command line and exit with its status."""
    from berth.cli.app import run_cli  # noqa: PLC0415 -- see above

    sys.exit(run_cli(sys.argv[1:]))


if __name__ == "__main__":
    main()
