"""A card's status without a card: what the tests of the node and of the wire show."""

from berth.views import CardStatus, CardView


def card_view(card: str, index: int) -> CardView:
    return CardView(
        card=card,
        index=index,
        uuid="",
        pci="",
        product="",
        vendor="nvidia",
        total_mib=1000,
        used_mib=0,
        free_mib=1000,
        baseline_mib=0,
        unexplained_mib=0,
        capacity_mib=1000,
        state="ok",
        why=None,
        reading_age_s=0.1,
        utilisation_pct=None,
        temperature_c=None,
        power_w=None,
        power_limit_w=None,
        fan_pct=None,
        clamped_mib=0,
    )


def card_status(card: str, index: int) -> CardStatus:
    return CardStatus(card=card_view(card, index), leases=(), waiting=(), stowaways=())
