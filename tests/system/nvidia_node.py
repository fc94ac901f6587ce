"""A berthd on real pynvml and the stub of NVIDIA's library, and the hand that feeds the stub.

Engines claim memory as on simulated cards (`berth sim claim`, `berth sim engine`): the feeder maps
the claims of living processes to what the stub's driver shows, as a driver would.
"""

import threading
from pathlib import Path
from typing import Any

from berth.probes.procfs import read_process
from tests.nvml_stub import GIB, LIBRARY_VARIABLE, MIB, STATE_VARIABLE, Row, StubCard, StubDriver
from tests.system.node import BERTH, Node

FEED_EVERY = 0.005
REAL_DRIVER = Path("/sys/bus/pci/drivers/nvidia")
CARD = StubCard(total=24 * GIB, reserved=421 * MIB, mig=False)


class Feeder(threading.Thread):
    """Shows the claims of living processes on the cards of the stub."""

    def __init__(self, claims: Path, driver: StubDriver) -> None:
        super().__init__(name="feeder", daemon=True)
        self._claims = claims
        self._driver = driver
        self._shown: dict[int, tuple[Row, ...]] = {}
        self._ended = threading.Event()
        self._once = threading.Lock()

    def run(self) -> None:
        """Feed until stopped."""
        while not self._ended.wait(FEED_EVERY):
            self.feed()

    def feed(self) -> None:
        """Show what is claimed now."""
        with self._once:
            for index in range(len(self._driver.cards)):
                rows = tuple(self._rows(index))
                if rows != self._shown.get(index):
                    self._shown[index] = rows
                    used = sum(row.used or 0 for row in rows)
                    self._driver.change(index, rows=rows, used=used)

    def change(self, index: int, **changes: Any) -> None:
        """Change the stub's card, never between the feeder's own look and its change."""
        with self._once:
            self._driver.change(index, **changes)

    def _rows(self, index: int) -> list[Row]:
        found = []
        for path in sorted((self._claims / str(index)).glob("[0-9]*")):
            facts = read_process(int(path.name))
            try:
                mib = int(path.read_text())
            except (OSError, ValueError):
                continue
            if facts is not None and not facts.dead and mib:
                found.append(Row(facts.process.pid, mib * MIB))
        return found

    def stop(self) -> None:
        """End feeding."""
        self._ended.set()
        self.join(timeout=5.0)


class NvidiaNode(Node):
    """One berthd that governs the cards of a stub driver with `--gpu all`."""

    def __init__(self, folder: Path, library: Path, *cards: StubCard) -> None:
        super().__init__(folder, [])
        self.driver = StubDriver(folder / "driver", *(cards or (CARD,)))
        del self.environment["BERTH_SIM_DIR"]
        self.environment.pop(LIBRARY_VARIABLE, None)
        self.environment["LD_LIBRARY_PATH"] = str(library.parent)
        self.environment[STATE_VARIABLE] = str(self.driver.path)
        self.feeder = Feeder(self.sim / "claims", self.driver)
        self.feeder.start()

    def start(self, *flags: str) -> None:
        """Start berthd and wait until it has looked at every card."""
        super().start(*(flags or ("--gpu", "all")))

    def answers(self) -> bool:
        """Tell whether berthd answers and has looked at its cards."""
        assert self.daemon is not None
        assert self.daemon.poll() is None, f"berthd ended: {self.log_text()}"
        shown = self.try_status()
        return shown is not None and all(c["why"] != "not read yet" for c in shown["cards"])

    def claiming(self, mib: int, *command: str, card: int = 0) -> list[str]:
        """Return a command that claims memory and then becomes `command`."""
        where = ("--sim", str(self.sim), "--card", str(card))
        return [*BERTH, "sim", "claim", *where, "--mib", str(mib), "--", *command]

    def card(self, name: str) -> dict[str, Any]:
        """Return a card's row of the status."""
        rows: list[dict[str, Any]] = self.status()["cards"]
        return next(row for row in rows if row["card"] == name)

    def close(self) -> None:
        """Kill whatever is left."""
        super().close()
        self.feeder.stop()
