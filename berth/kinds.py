"""The kinds of events: a family, and what happens in it."""

from collections.abc import Mapping
from typing import Final

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "lease": (
        "queued",
        "granted",
        "started",
        "draining",
        "released",
        "freed",
        "refused",
        "withdrawn",
        "attached",
        "kept",
        "stuck",
        "contested",
        "failed",
        "reclaimed",
    ),
    "card": ("ok", "unmeasured", "lost", "xid"),
    "engine": ("ready",),
    "stowaway": ("seen", "gone"),
    "alert": ("raised", "cleared"),
    "node": ("starting", "stopping"),
}
"""Every kind that berthd writes, by its family."""


def is_kind(word: str) -> bool:
    """Tell whether a word is a family of events (`lease`), or one of its kinds (`lease.stuck`)."""
    family, dot, kind = word.partition(".")
    return family in KINDS and (not dot or kind in KINDS[family])


def kinds_of(word: str) -> str:
    """Return for a sentence what there is instead: the kinds of its family, else the families."""
    family = word.partition(".")[0]
    if family in KINDS:
        return f"{family}: {', '.join(f'{family}.{kind}' for kind in KINDS[family])}"
    return f"{', '.join(KINDS)}; and one of them alone as lease.stuck"
