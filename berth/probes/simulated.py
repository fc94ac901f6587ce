"""Simulated cards: declared in a file, their memory claimed by living processes (Z1).

    DIR/cards.toml             [[card]] total_mib, name, baseline_mib, unexplained_mib, uuid, pci,
                               vendor, temperature_c, error, runtime_status (a "suspended" one is
                               read only when it is asked for); read again when it changes
    DIR/claims/<index>/<pid>   decimal MiB that the process <pid> claims on the card

A claim ends with its file or its process. Who claims writes beside and renames; a figure that
cannot be read (half written) leaves the last one standing. Nothing else is needed, so any language
can play an engine.
"""

import os
import time
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from berth.cards import card_name, normal_pci
from berth.errors import BerthError, Code, Exit
from berth.ids import ProcessId
from berth.probes.procfs import ancestors, program_name, read_process, scope_of
from berth.probes.source import SimulatedCard
from berth.readings import (
    UNTOLD,
    CardIdentity,
    GpuProcess,
    Health,
    Look,
    Reading,
    Unknown,
    Unmeasured,
)
from berth.units import Instant, MiB

CARDS_FILE: Final = "cards.toml"
CLAIMS_FOLDER: Final = "claims"

_SIZE = Annotated[int, msgspec.Meta(ge=0)]
_ERRORS: Final = {
    "lost": Unmeasured(Unknown.LOST, "the card fell off the bus (simulated)"),
    "driver_mismatch": Unmeasured(
        Unknown.DRIVER_MISMATCH, "driver and library do not match; reboot (simulated)"
    ),
    "no_driver": Unmeasured(Unknown.NO_DRIVER, "the driver is not loaded (simulated)"),
    "reset_required": Unmeasured(Unknown.RESET_REQUIRED, "the card needs a reset (simulated)"),
    "no_memory": Unmeasured(Unknown.NO_MEMORY_SIZE, "the card's size cannot be read (simulated)"),
    "asleep": Unmeasured(Unknown.ASLEEP, "the card sleeps (simulated)"),
    "hang": Unmeasured(Unknown.HUNG, "the driver hangs (simulated)"),
}


class DeclaredCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[card]]` of cards.toml."""

    total_mib: Annotated[int, msgspec.Meta(ge=1)]
    name: str = "Simulated card"
    baseline_mib: _SIZE = 0
    unexplained_mib: _SIZE = 0
    uuid: str | None = None
    pci: str = ""
    vendor: str = "nvidia"
    temperature_c: float | None = None
    utilisation_pct: float | None = None
    power_w: float | None = None
    error: str | None = None
    runtime_status: Literal["active", "suspended"] = "active"


class DeclaredCards(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """cards.toml."""

    card: list[DeclaredCard] = []


def declared_cards(folder: Path) -> tuple[DeclaredCard, ...]:
    """Read cards.toml.

    Raises:
        BerthError: there is no such file, or it is wrong; the sentence says where.
    """
    path = folder / CARDS_FILE
    try:
        declared = msgspec.convert(tomllib.loads(path.read_text()), DeclaredCards)
    except FileNotFoundError:
        message = f"{path} is not there, and it declares the simulated cards"
        hint = "a card is two lines:  [[card]]  and  total_mib = 24576"
        raise BerthError(Code.BAD_CONFIG, message, hint=hint, exit_status=Exit.CONFIG) from None
    except (OSError, ValueError) as error:
        raise BerthError(Code.BAD_CONFIG, f"{path}: {error}", exit_status=Exit.CONFIG) from error
    for card in declared.card:
        if card.error is not None and card.error not in _ERRORS:
            known = ", ".join(sorted(_ERRORS))
            message = f"{path}: error = {card.error!r} is none of {known}"
            raise BerthError(Code.BAD_CONFIG, message, exit_status=Exit.CONFIG)
    return tuple(declared.card)


def simulated_cards(folder: Path) -> tuple[SimulatedCard, ...]:
    """Return the cards that a folder declares, and make the folders that claims go into."""
    specs = []
    for index, card in enumerate(declared_cards(folder)):
        (folder / CLAIMS_FOLDER / str(index)).mkdir(parents=True, exist_ok=True)
        pci = normal_pci(card.pci) if card.pci else None
        if card.pci and pci is None:
            message = f"{folder / CARDS_FILE}: pci = {card.pci!r} is no PCI address"
            raise BerthError(Code.BAD_CONFIG, message, exit_status=Exit.CONFIG)
        identity = CardIdentity(
            name=card_name(index),
            index=index,
            uuid=f"SIM-{index}" if card.uuid is None else card.uuid,
            pci=pci or f"0000:{index + 1:02x}:00.0",
            product=card.name,
            vendor=card.vendor,
        )
        specs.append(SimulatedCard(folder=str(folder), identity=identity))
    return tuple(specs)


class _Claim(msgspec.Struct):
    """A claim under watch: who claims, and the last figure that could be read."""

    process: ProcessId
    mib: MiB


class SimulatedSource:
    """One simulated card, as its driver worker sees it."""

    def __init__(self, spec: SimulatedCard) -> None:
        self._folder = Path(spec.folder)
        self._index = spec.identity.index
        self._claims_folder = self._folder / CLAIMS_FOLDER / str(self._index)
        self._claims: dict[int, _Claim] = {}
        self._declared: DeclaredCard | None = None
        self._stamp: tuple[int, int] | None = None

    @property
    def stale_library(self) -> bool:
        """Tell that there is no library to grow stale."""
        return False

    def take_xids(self) -> tuple[int, ...]:
        """Return no Xid: a simulated card throws none."""
        return ()

    def read(self, *, wake: bool = False) -> Look:
        """Look at the card: who claims what now. A suspended one only with `wake`."""
        card = self._declaration()
        if isinstance(card, Unmeasured):
            return card
        if card.error == "hang":
            _hang()
        if card.error is not None:
            return _ERRORS[card.error]
        if card.runtime_status == "suspended" and not wake:
            return _ERRORS["asleep"]
        taken = Instant(time.monotonic())
        rows = tuple(_row(claim) for claim in self._living_claims())
        claimed = sum(row.used for row in rows if not isinstance(row.used, Unmeasured))
        used = card.baseline_mib + card.unexplained_mib + claimed
        return Reading(
            taken=taken,
            total=MiB(card.total_mib),
            used=MiB(min(used, card.total_mib)),
            reserved=MiB(card.baseline_mib),
            processes=rows,
            health=Health(
                temperature_c=UNTOLD if card.temperature_c is None else card.temperature_c,
                utilisation_pct=UNTOLD if card.utilisation_pct is None else card.utilisation_pct,
                power_w=UNTOLD if card.power_w is None else card.power_w,
            ),
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _declaration(self) -> DeclaredCard | Unmeasured:
        """Return the card as cards.toml declares it now; the last good one while it is edited."""
        path = self._folder / CARDS_FILE
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                self._declared = declared_cards(self._folder)[self._index]
                self._stamp = stamp
        except (OSError, BerthError, IndexError) as error:
            if self._declared is None:
                return Unmeasured(Unknown.FAILED, str(error))
        return self._declared or Unmeasured(Unknown.FAILED, f"{path} declares no such card")

    def _living_claims(self) -> list[_Claim]:
        """Bring the claims up to date, and delete those whose process is gone."""
        names = self._claim_names()
        for pid in [pid for pid in self._claims if pid not in names]:
            del self._claims[pid]
        for pid in names:
            self._take(pid)
        return list(self._claims.values())

    def _claim_names(self) -> set[int]:
        try:
            names = os.listdir(self._claims_folder)  # noqa: PTH208 -- read 25 times a second
        except FileNotFoundError:
            self._claims_folder.mkdir(parents=True, exist_ok=True)
            return set()
        return {int(name) for name in names if name.isdecimal() and name.isascii()}

    def _take(self, pid: int) -> None:
        known = self._claims.get(pid)
        facts = read_process(pid)
        if facts is None or facts.dead or (known is not None and known.process != facts.process):
            with suppress(OSError):
                (self._claims_folder / str(pid)).unlink()
            self._claims.pop(pid, None)
            return
        mib = self._figure(pid)
        if known is not None:
            known.mib = known.mib if mib is None else mib
        elif mib is not None:
            self._claims[pid] = _Claim(facts.process, mib)

    def _figure(self, pid: int) -> MiB | None:
        try:
            return MiB(max(0, int((self._claims_folder / str(pid)).read_text())))
        except (OSError, ValueError):
            return None


def _hang() -> None:
    """Never come back, as a driver call that hangs."""
    while True:
        time.sleep(3600)


def _row(claim: _Claim) -> GpuProcess:
    pid = claim.process.pid
    return GpuProcess(
        process=claim.process,
        name=program_name(pid),
        used=claim.mib,
        ancestors=ancestors(pid),
        scope=scope_of(pid),
    )
