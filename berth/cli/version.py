"""`berth version`."""

from berth import __version__
from berth.cli.context import where


def version() -> None:
    """Show which Berth this is, and where it looks for berthd."""
    print(f"berth {__version__}")
    print(f"looks for berthd at {where(None)}")
