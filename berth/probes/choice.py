"""Which cards berthd governs: `--gpu`, `[daemon] gpu` (M1)."""

from collections.abc import Sequence
from pathlib import Path

from berth.cards import find_card, known_cards, no_card
from berth.errors import BerthError, Code, Exit
from berth.probes.simulated import simulated_cards
from berth.probes.source import CardSpec

ALL = "all"


def chosen_cards(wanted: str | Sequence[str], simulated: Path | None) -> tuple[CardSpec, ...]:
    """Return the cards to govern, in the order of their index.

    Raises:
        BerthError: there is no card, or none of that name.
    """
    found = _found(simulated)
    names = wanted.split(",") if isinstance(wanted, str) else list(wanted)
    if names == [ALL]:
        return found
    identities = [spec.identity for spec in found]
    chosen = []
    for name in names:
        card = find_card(identities, name)
        if card is None:
            raise BerthError(
                Code.NO_CARD,
                no_card(name),
                hint=f"there is {known_cards(identities)}",
                exit_status=Exit.REFUSED,
            )
        chosen.append(card)
    return tuple(spec for spec in found if spec.identity in chosen)


def _found(simulated: Path | None) -> tuple[CardSpec, ...]:
    cards = () if simulated is None else simulated_cards(simulated)
    if not cards:
        hint = "without a GPU, try simulated cards:  berth daemon --sim DIR"
        raise BerthError(Code.NO_CARD, "no card found", hint=hint, exit_status=Exit.UNAVAILABLE)
    return cards
