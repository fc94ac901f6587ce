"""Machines made of files: a /proc and a /sys that a test writes, and what cases say of cards."""

import csv
from pathlib import Path

from berth.cards import card_name
from berth.probes.source import NvidiaCard
from berth.readings import CardIdentity, Look, Reading
from berth.units import MiB
from tests.nvml_stub import MIB, Nvml, StubCard

CASES = Path(__file__).with_name("cases")
HOST_NAMESPACE = "pid:[4026531836]"


class ManualClock:
    """A monotonic clock that stands until it is turned."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def later(self, seconds: float) -> None:
        self.now += seconds


class FakeMachine:
    """The files of a machine that the probe reads."""

    def __init__(self, root: Path) -> None:
        self.proc = root / "proc"
        self.sys = root / "sys"
        self.bus = self.sys / "bus/pci/devices"
        self.drivers = self.sys / "bus/pci/drivers"
        self.bus.mkdir(parents=True)
        self.namespace(HOST_NAMESPACE)
        self.write("proc/sys/kernel/osrelease", "6.18.0\n")

    def write(self, name: str, text: str) -> None:
        path = self.proc.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def namespace(self, text: str) -> None:
        """Say in which pid namespace the reader lives."""
        link = self.proc / "self/ns/pid"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(text)

    def process(
        self,
        pid: int,
        name: str,
        *,
        parent: int = 1,
        argv: str = "",
        cgroup: str = "/",
        start: int = 7,
    ) -> None:
        fields = ["S", str(parent), *["0"] * 17, str(start), *["0"] * 20]
        self.write(f"proc/{pid}/stat", f"{pid} ({name[:15]}) {' '.join(fields)}\n")
        self.write(f"proc/{pid}/cmdline", (argv or name) + "\0")
        self.write(f"proc/{pid}/cgroup", f"0::{cgroup}\n")

    def card(
        self, pci: str, *, driver: str = "nvidia", status: str = "active", vendor: str = "0x10de"
    ) -> None:
        """Put a card on the bus."""
        device = f"sys/bus/pci/devices/{pci}"
        self.write(f"{device}/vendor", f"{vendor}\n")
        self.write(f"{device}/class", "0x030000\n")
        self.write(f"{device}/power/runtime_status", f"{status}\n")
        link = self.bus / pci / "driver"
        link.unlink(missing_ok=True)
        if driver:
            (self.drivers / driver).mkdir(parents=True, exist_ok=True)
            link.symlink_to(self.drivers / driver)

    def power_saving(self, pci: str, status: str) -> None:
        """Say whether NVIDIA's driver lets that card sleep."""
        self.write(
            f"proc/driver/nvidia/gpus/{pci}/power", f"Runtime D3 status:          {status}\n"
        )


def address(index: int) -> str:
    """Return where the stub puts its cards."""
    return f"0000:{0x41 + index:02x}:00.0"


def spec_of(machine: FakeMachine, index: int, *, pci: str = "", uuid: str = "") -> NvidiaCard:
    identity = CardIdentity(
        name=card_name(index), index=index, pci=pci or address(index), uuid=uuid, product="RTX"
    )
    return NvidiaCard(identity=identity, proc=str(machine.proc), sys=str(machine.sys))


def as_reading(look: Look) -> Reading:
    assert isinstance(look, Reading), look
    return look


def figures(look: Look) -> dict[int, MiB | str]:
    """Return what each pid of a reading holds: MiB, or why it is not known."""
    rows = as_reading(look).processes
    return {
        row.process.pid: row.used if isinstance(row.used, int) else row.used.why for row in rows
    }


def told_by(case: str) -> list[StubCard]:
    """Return the cards that a case's table shows, as the driver would tell of them."""
    with (CASES / case).open() as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    return [_card(row) for row in rows]


def _card(row: dict[str, str]) -> StubCard:
    lost = "[GPU is lost]" in row.values()
    no_size = row["memory.total [MiB]"] == "[N/A]"
    total, used = (_bytes(row[f"memory.{what} [MiB]"]) for what in ("total", "used"))
    return StubCard(
        uuid="" if lost else row["uuid"],
        pci=row["pci.bus_id"],
        product=row["name"],
        total=total,
        used=used,
        reserved=0,
        error=Nvml.LOST if lost else Nvml.OK,
        memory_error=Nvml.NOT_SUPPORTED if no_size else Nvml.OK,
    )


def _bytes(text: str) -> int:
    number = text.removesuffix(" MiB")
    return int(number) * MIB if number.isdecimal() else 0
