"""Who may tell whom. Requests go down the tiers, facts go anywhere they are owned.

`tests/test_architecture.py` holds every actor to its row.
"""

from typing import Final

TIERS: Final = ("node", "card", "trees", "probe")
"""From the edge down. The journal and the supervisor stand beside all of them."""

MAY_TELL: Final[dict[str, frozenset[str]]] = {
    "node": frozenset({"card", "journal", "supervisor"}),
    "card": frozenset({"node", "journal", "probe", "trees", "supervisor"}),
    "trees": frozenset({"card", "supervisor"}),
    "probe": frozenset({"card", "supervisor"}),
    "journal": frozenset({"node", "card", "supervisor"}),
    "supervisor": frozenset({"journal"}),
}
"""A role, and the roles whose addresses it is given. (The supervisor's slots reach all roles.)"""
