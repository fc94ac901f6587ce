"""Which cards a program is shown: the variable that its GPU libraries read first (M3)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

_READ_BY: Final[Mapping[str, str]] = {"amd": "ROCR_VISIBLE_DEVICES"}
"""By vendor, where it is not CUDA's."""


def visible(vendor: str, uuids: Sequence[str], already: Collection[str]) -> dict[str, str]:
    """Return what shows a program these cards only, in the order named.

    Empty where the environment says it `already` (its names), or a card has no UUID.
    """
    variable = _READ_BY.get(vendor, "CUDA_VISIBLE_DEVICES")
    if variable in already or not uuids or not all(uuids):
        return {}
    return {variable: ",".join(uuids)}
