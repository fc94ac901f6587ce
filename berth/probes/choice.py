"""Which cards berthd governs: `--gpu`, `[daemon] gpu` (M1).

A card that is there and cannot be governed (MIG has cut it, it fell off the bus, a VM has it) is
chosen all the same, as long as another one can be: it is shown with the reason, nothing is granted
on it, and it may heal. It stands behind the good ones, so that a request without a card (Q9) goes
to one that can be had. Where no card can be governed berthd does not start: it would only hold
engines up.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from berth.cards import find_card, known_cards, no_card
from berth.errors import BerthError, Code, Exit
from berth.probes.nvidia_cards import FoundCards, RefusedCard, nvidia_cards
from berth.probes.simulated import simulated_cards
from berth.probes.source import CardSpec, NvidiaCard
from berth.readings import CardIdentity

ALL = "all"
WAY_OUT = "without a GPU:  berth demo  shows Berth at work, berth daemon --sim DIR  plays cards"


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The cards to govern, the good ones first, and why some of them cannot be read now."""

    cards: tuple[CardSpec, ...]
    refused: tuple[RefusedCard, ...] = ()


def chosen_cards(
    wanted: str | Sequence[str],
    simulated: Path | None,
    look_up: Callable[[], FoundCards] = nvidia_cards,
) -> Choice:
    """Return the cards to govern, in the order of their index.

    Raises:
        BerthError: there is no card, none of that name, or none that can be governed.
    """
    found = _nvidia(look_up()) if simulated is None else Choice(cards=simulated_cards(simulated))
    if not found.cards:
        message = f"no card is declared in {simulated}"
        raise BerthError(Code.NO_CARD, message, hint=WAY_OUT, exit_status=Exit.UNAVAILABLE)
    names = wanted.split(",") if isinstance(wanted, str) else list(wanted)
    chosen = found if names == [ALL] else _named(found, names)
    if len(chosen.cards) == len(chosen.refused):
        raise _ungovernable(chosen.refused)
    return chosen


def _named(found: Choice, names: Sequence[str]) -> Choice:
    identities = [spec.identity for spec in found.cards]
    wanted: list[CardIdentity] = []
    for name in names:
        card = find_card(identities, name)
        if card is None:
            raise BerthError(
                Code.NO_CARD,
                no_card(name),
                hint=f"there is {known_cards(identities)}",
                exit_status=Exit.REFUSED,
            )
        wanted.append(card)
    return Choice(
        cards=tuple(spec for spec in found.cards if spec.identity in wanted),
        refused=tuple(card for card in found.refused if card.identity in wanted),
    )


def _nvidia(found: FoundCards) -> Choice:
    if found.nothing_here:
        looked = "" if found.trouble is None else f": {found.trouble.detail}"
        message = f"no NVIDIA card on the bus, and no driver that names one{looked}"
        raise BerthError(Code.NO_CARD, message, hint=WAY_OUT, exit_status=Exit.UNAVAILABLE)
    if not found.cards and not found.refused and found.trouble is not None:
        message = f"no card can be governed: {found.trouble.detail}"
        raise BerthError(Code.NO_CARD, message, hint=WAY_OUT, exit_status=Exit.UNAVAILABLE)
    refused = tuple(
        NvidiaCard(identity=card.identity, proc=found.proc, sys=found.sys, refused=True)
        for card in found.refused
    )
    return Choice(cards=(*found.cards, *refused), refused=found.refused)


def _ungovernable(refused: Sequence[RefusedCard]) -> BerthError:
    """Return the error for cards none of which can be governed, each reason told once."""
    reasons: dict[str, list[str]] = {}
    for card in refused:
        reasons.setdefault(card.why.detail, []).append(known_cards([card.identity]))
    told = "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())
    return BerthError(
        Code.NO_CARD,
        f"no card can be governed: {told}",
        hint=WAY_OUT,
        exit_status=Exit.UNAVAILABLE,
    )
