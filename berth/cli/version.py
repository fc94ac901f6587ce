"""`berth version`."""

from berth import __version__


def version() -> None:
    """Show which Berth this is."""
    print(f"berth {__version__}")
