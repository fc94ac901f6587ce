"""The mark that every process of a wrapped run carries in its environment."""

import hashlib
from typing import Final

from berth.ids import Key

RUN_MARK: Final = "BERTH_RUN"
"""What is left of a run whose wrapper was killed is found by this variable."""


def mark_of(key: Key) -> str:
    """Return the mark of a run. It does not give its key away."""
    return hashlib.sha256(key.encode()).hexdigest()[:20]
