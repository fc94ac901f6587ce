"""Who plays in the demo: two simulated cards, and everybody who wants one.

Sizes are in MiB. On gpu0 two chat engines do not fit beside each other; the image engine fits
beside one of them and not beside the other. On gpu1 a training job and a browser leave room for
neither a person nor the engine that wants a part of both cards.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TOTAL_MIB: Final = 24576
BASELINE_MIB: Final = 421
CARDS: Final = 2

CARDS_TOML: Final = (
    f'[[card]]\ntotal_mib = {TOTAL_MIB}\nname = "RTX 4090"\nbaseline_mib = {BASELINE_MIB}\n' * CARDS
)

BERTH: Final = (sys.executable, "-m", "berth")
TOKEN_S: Final = 0.03
LOAD_S: Final = 0.3
TRAIN_TURN_S: Final = 4.0
GRACE_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Somebody who wants memory, of one card or the same of each of several."""

    name: str
    cards: tuple[int, ...]
    mib: int


CHAT: Final = Role(name="chat", cards=(0,), mib=14000)
CODER: Final = Role(name="coder", cards=(0,), mib=16000)
GIANT: Final = Role(name="giant", cards=(0, 1), mib=12500)
IMAGES: Final = Role(name="images", cards=(0,), mib=9500)
TRAIN: Final = Role(name="train", cards=(1,), mib=12500)
BROWSER: Final = Role(name="browser", cards=(1,), mib=2450)

CHATS: Final = (CHAT, CODER, GIANT)
ENGINES: Final = (*CHATS, IMAGES, TRAIN)


def bare_command(role: Role, port: int = 0) -> list[str]:
    """Return what plays an engine: it serves on `port`, or is a job when there is none.

    It fails when its card is overfull once it has loaded, as a real one does.
    """
    kind = ("--kind", "llama", "--slots", "2", "--port", str(port)) if port else ("--kind", "plain")
    engine = [
        *(*BERTH, "sim", "engine", *kind, "--mib", str(role.mib), "--card", str(role.cards[0])),
        *("--token-s", str(TOKEN_S), "--load-s", str(LOAD_S), "--oom"),
    ]
    for card in role.cards[1:]:
        engine = _also_on(card, role.mib, engine)
    return engine


def leased_command(role: Role, port: int = 0) -> list[str]:
    """Return the same under `berth run`: it takes its turn."""
    cards = ",".join(f"gpu{card}" for card in role.cards)
    terms = ["--as", role.name, "--gpu", cards, "--needs-mib", str(role.mib), "--quiet"]
    terms += ["--grace", f"{GRACE_S:g}s", "--wait", "1h"]
    if port:
        terms += ["--drain-slots", f"http://127.0.0.1:{port}"]
    else:
        terms += ["--priority", "batch", "--min-turn", f"{TRAIN_TURN_S:g}s"]
    return [*BERTH, "run", *terms, "--", *bare_command(role, port)]


def image_command(*, leased: bool) -> list[str]:
    """Return what plays the image engine: a script that leases its card by itself."""
    return [sys.executable, "-m", "berth.demo.images", *([] if leased else ["--without"])]


def stowaway_command() -> list[str]:
    """Return what plays a program that leases nothing."""
    return [sys.executable, "-m", "berth.demo.browser"]


def _also_on(card: int, mib: int, command: Sequence[str]) -> list[str]:
    return [*BERTH, "sim", "claim", "--mib", str(mib), "--card", str(card), "--", *command]


def own_environment(folder: Path) -> dict[str, str]:
    """Return what keeps a demo in its folder: its socket, its state, its cards, no config."""
    return {
        "BERTH_SOCKET": str(folder / "berth.sock"),
        "BERTH_STATE_DIR": str(folder / "state"),
        "BERTH_SIM_DIR": str(folder),
        "BERTH_CONFIG": os.devnull,
    }
