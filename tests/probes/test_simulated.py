"""Simulated cards: every sentence of Z1, with the source used directly."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from berth.errors import BerthError, Code, Exit
from berth.ids import ProcessId
from berth.probes import simulated
from berth.probes.procfs import ProcessFacts, identify
from berth.probes.simulated import SimulatedSource, simulated_cards
from berth.readings import UNTOLD, Look, Reading, Unknown, Unmeasured

GONE = 2**22 + 7
"""No process has this pid: the kernel hands out 2**22 at most."""


@dataclass
class Folder:
    """A folder of simulated cards, and processes that are whatever a test says they are."""

    path: Path
    processes: dict[int, ProcessFacts] = field(default_factory=dict)

    def declare(self, text: str) -> None:
        (self.path / "cards.toml").write_text(text)

    def open(self, index: int = 0) -> SimulatedSource:
        return SimulatedSource(simulated_cards(self.path)[index])

    def claim(self, pid: int, figure: str, index: int = 0) -> Path:
        file = self.path / "claims" / str(index) / str(pid)
        file.write_text(figure)
        return file

    def runs(self, pid: int, start: int = 100, *, dead: bool = False) -> None:
        process = ProcessId(pid, start)
        self.processes[pid] = ProcessFacts(process=process, parent=1, name="engine", dead=dead)

    def ends(self, pid: int) -> None:
        del self.processes[pid]

    def names(self, index: int = 0) -> set[str]:
        return {file.name for file in (self.path / "claims" / str(index)).iterdir()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = Folder(tmp_path)
    made.declare("[[card]]\ntotal_mib = 24576\n")
    monkeypatch.setattr(simulated, "read_process", made.processes.get)
    return made


def reading(look: Look) -> Reading:
    assert isinstance(look, Reading), look
    return look


def used(source: SimulatedSource) -> dict[int, object]:
    """Return who uses how much of the card now."""
    return {row.process.pid: row.used for row in reading(source.read()).processes}


def unknown(source: SimulatedSource) -> Unmeasured:
    look = source.read()
    assert isinstance(look, Unmeasured), look
    return look


# --- what is declared -----------------------------------------------------------------------------


def test_card_needs_its_size_and_nothing_else(folder: Folder) -> None:
    """Z1: `[[card]]` with `total_mib`; the rest is optional."""
    (spec,) = simulated_cards(folder.path)
    card = spec.identity
    assert (card.name, card.index, card.uuid, card.vendor) == ("gpu0", 0, "SIM-0", "nvidia")
    assert card.pci == "0000:01:00.0"
    look = reading(SimulatedSource(spec).read())
    assert (look.total, look.used, look.reserved, look.processes) == (24576, 0, 0, ())
    assert look.health.temperature_c == UNTOLD


def test_cards_are_numbered_in_the_order_of_the_file(folder: Folder) -> None:
    """Z1, M1: index, UUID, PCI address, vendor and name are those declared."""
    folder.declare(
        '[[card]]\ntotal_mib = 1\n[[card]]\ntotal_mib = 2\nname = "Big"\nuuid = "GPU-x"\n'
        'pci = "00000000:41:00.0"\nvendor = "amd"\n'
    )
    _, second = (spec.identity for spec in simulated_cards(folder.path))
    assert (second.name, second.index, second.product) == ("gpu1", 1, "Big")
    assert (second.uuid, second.pci, second.vendor) == ("GPU-x", "0000:41:00.0", "amd")


def test_memory_of_driver_and_of_nobody_is_used(folder: Folder) -> None:
    """Z1, B2: `baseline_mib` is what the driver names, `unexplained_mib` nobody's."""
    folder.declare("[[card]]\ntotal_mib = 1000\nbaseline_mib = 300\nunexplained_mib = 50\n")
    look = reading(folder.open().read())
    assert (look.used, look.reserved, look.free, look.processes) == (350, 300, 650, ())


def test_temperature_and_load_are_shown_where_declared(folder: Folder) -> None:
    """Z1, B1: what is not told is unmeasured, never 0."""
    folder.declare("[[card]]\ntotal_mib = 1000\ntemperature_c = 61\npower_w = 0\n")
    health = reading(folder.open().read()).health
    assert (health.temperature_c, health.power_w) == (61, 0)
    assert health.utilisation_pct == health.fan_pct == UNTOLD


@pytest.mark.parametrize(
    ("error", "why"),
    [
        ("lost", Unknown.LOST),
        ("driver_mismatch", Unknown.DRIVER_MISMATCH),
        ("no_driver", Unknown.NO_DRIVER),
        ("reset_required", Unknown.RESET_REQUIRED),
        ("no_memory", Unknown.NO_MEMORY_SIZE),
        ("asleep", Unknown.ASLEEP),
    ],
)
def test_error_makes_the_card_unreadable(folder: Folder, error: str, why: Unknown) -> None:
    """Z1: `error`; `no_memory` is a card whose size can't be read."""
    folder.declare(f'[[card]]\ntotal_mib = 1000\nerror = "{error}"\n')
    look = unknown(folder.open())
    assert look.why is why
    assert look.detail


def test_card_may_hang_as_drivers_do(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """B1: what a probe does with a call that never comes back can be tried."""

    def hang() -> None:
        raise TimeoutError

    monkeypatch.setattr(simulated, "_hang", hang)
    folder.declare('[[card]]\ntotal_mib = 1000\nerror = "hang"\n')
    with pytest.raises(TimeoutError):
        folder.open().read()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is not there"),
        ("[[card]]\n", "total_mib"),
        ("[[card]]\ntotal_mib = 0\n", "total_mib"),
        ("[[card]]\ntotal_mib = 1.5\n", "total_mib"),
        ('[[card]]\ntotal_mib = 1\nerror = "sulks"\n', "error = 'sulks' is none of"),
        ("[[card]]\ntotal_mib = 1\nbaseline_mib = -1\n", "baseline_mib"),
        ("[[card]]\ntotal_mib = 1\ncolour = 1\n", "colour"),
        ("[[cards]]\ntotal_mib = 1\n", "cards"),
        ("[[card]\n", "cards.toml"),
    ],
)
def test_file_that_is_wrong_is_told_at_the_start(
    folder: Folder, text: str | None, words: str
) -> None:
    """Z1, S1: the daemon does not start on cards that it cannot understand."""
    if text is None:
        (folder.path / "cards.toml").unlink()
    else:
        folder.declare(text)
    with pytest.raises(BerthError) as raised:
        simulated_cards(folder.path)
    assert words in raised.value.message
    assert (raised.value.code, raised.value.exit_status) == (Code.BAD_CONFIG, Exit.CONFIG)


def test_file_without_a_card_declares_none(folder: Folder) -> None:
    """Z1: what to say of a node without cards is the daemon's business."""
    folder.declare("")
    assert simulated_cards(folder.path) == ()


def test_address_that_is_none_is_told(folder: Folder) -> None:
    """S1: bad values are errors; the card would be found under an address nobody wrote."""
    folder.declare('[[card]]\ntotal_mib = 1\npci = "slot 3"\n')
    with pytest.raises(BerthError):
        simulated_cards(folder.path)


# --- edited while it runs -------------------------------------------------------------------------


def test_file_is_read_again_when_it_changes(folder: Folder) -> None:
    """Z1: re-read when it changes: a test takes a card away and brings it back."""
    source = folder.open()
    folder.declare('[[card]]\ntotal_mib = 24576\nerror = "lost"\n')
    assert unknown(source).why is Unknown.LOST
    folder.declare("[[card]]\ntotal_mib = 24576\nunexplained_mib = 7\n")
    assert reading(source.read()).used == 7


@pytest.mark.parametrize("text", ["[[card]\n", "[[card]]\n", "", '[[card]]\ntotal_mib = "x"\n'])
def test_file_that_is_broken_while_it_is_edited_leaves_the_last_one_standing(
    folder: Folder, text: str
) -> None:
    """Z1: an editor that saves half a file takes no card away."""
    source = folder.open()
    source.read()
    folder.declare(text)
    assert reading(source.read()).total == 24576
    folder.declare("[[card]]\ntotal_mib = 1000\n")
    assert reading(source.read()).total == 1000


def test_file_that_is_gone_while_it_is_edited_leaves_the_last_one_standing(folder: Folder) -> None:
    """Z1: some editors rename the old file away before they write the new one."""
    source = folder.open()
    source.read()
    (folder.path / "cards.toml").unlink()
    assert reading(source.read()).total == 24576


def test_card_that_was_never_read_is_unmeasured_while_its_file_is_broken(folder: Folder) -> None:
    """B1: nothing known is not 0."""
    source = folder.open()
    folder.declare("[[card]\n")
    assert unknown(source).why is Unknown.FAILED


# --- claims ---------------------------------------------------------------------------------------


def test_process_claims_memory_by_writing_its_size(folder: Folder) -> None:
    """Z1: decimal MiB in `DIR/claims/<index>/<pid>`; rewriting changes it."""
    source = folder.open()
    folder.runs(70)
    folder.claim(70, "14000")
    assert used(source) == {70: 14000}
    folder.claim(70, "500\n")
    assert used(source) == {70: 500}
    assert reading(source.read()).used == 500


def test_claim_that_is_deleted_is_free(folder: Folder) -> None:
    """Z1: deleting it frees it."""
    source = folder.open()
    folder.runs(70)
    file = folder.claim(70, "14000")
    assert used(source) == {70: 14000}
    file.unlink()
    assert used(source) == {}


def test_death_of_a_process_frees_its_claim_and_deletes_the_file(folder: Folder) -> None:
    """Z1: the death of the pid frees it."""
    source = folder.open()
    folder.runs(70)
    folder.claim(70, "14000")
    source.read()
    folder.ends(70)
    assert used(source) == {}
    assert folder.names() == set()


def test_zombie_is_dead(folder: Folder) -> None:
    """Z1: a zombie is death; its parent may never collect it."""
    source = folder.open()
    folder.runs(70)
    folder.claim(70, "14000")
    source.read()
    folder.runs(70, dead=True)
    assert used(source) == {}
    assert folder.names() == set()


def test_pid_that_was_handed_out_again_is_death(folder: Folder) -> None:
    """Z1: the start time is noted at first sight; another one later is another process."""
    source = folder.open()
    folder.runs(70, start=100)
    folder.claim(70, "14000")
    source.read()
    folder.runs(70, start=200)
    assert used(source) == {}
    assert folder.names() == set()
    folder.claim(70, "300")
    assert used(source) == {70: 300}


def test_claim_of_a_process_that_never_was_is_deleted(folder: Folder) -> None:
    """Z1: what an earlier berthd left, or a typing error, takes no memory."""
    source = folder.open()
    folder.claim(GONE, "14000")
    assert used(source) == {}
    assert folder.names() == set()


@pytest.mark.parametrize("figure", ["", "14 000", "14000M", "half", "1e4", "\x00\x00"])
def test_half_written_figure_leaves_the_last_one_standing(folder: Folder, figure: str) -> None:
    """Z1: write beside and rename; who does not is not misread."""
    source = folder.open()
    folder.runs(70)
    folder.claim(70, "14000")
    source.read()
    folder.claim(70, figure)
    assert used(source) == {70: 14000}
    assert folder.names() == {"70"}


def test_figure_that_was_never_readable_is_no_claim_yet(folder: Folder) -> None:
    """Z1: there is no last figure to stand; the next whole one counts."""
    source = folder.open()
    folder.runs(70)
    folder.claim(70, "")
    assert used(source) == {}
    folder.claim(70, "5")
    assert used(source) == {70: 5}


@pytest.mark.parametrize("figure", ["-5", "0"])
def test_figure_below_nothing_is_nothing(folder: Folder, figure: str) -> None:
    """Z1, B5: no claim gives a card more memory than it has."""
    source = folder.open()
    folder.runs(70)
    folder.claim(70, figure)
    assert reading(source.read()).used == 0


@pytest.mark.parametrize(
    "name", ["70.tmp", ".70", "seventy", "-70", "7 0", "\N{ARABIC-INDIC DIGIT SEVEN}", "+70"]
)
def test_names_that_are_no_number_are_ignored(folder: Folder, name: str) -> None:
    """Z1: a file that is written beside and renamed is not read before."""
    source = folder.open()
    folder.runs(70)
    (folder.path / "claims" / "0" / name).write_text("14000")
    assert used(source) == {}
    assert folder.names() == {name}


def test_claims_above_the_total_read_as_total(folder: Folder) -> None:
    """Z1: used reads total; each claim still shows, so that the collision can be told (B8)."""
    folder.declare("[[card]]\ntotal_mib = 1000\nbaseline_mib = 100\n")
    source = folder.open()
    for pid in (70, 71):
        folder.runs(pid)
        folder.claim(pid, "600")
    look = reading(source.read())
    assert (look.used, look.free) == (1000, 0)
    assert used(source) == {70: 600, 71: 600}


def test_claims_are_of_one_card(folder: Folder) -> None:
    """Z1: `<index>` says of which."""
    folder.declare("[[card]]\ntotal_mib = 1000\n[[card]]\ntotal_mib = 1000\n")
    first, second = folder.open(0), folder.open(1)
    folder.runs(70)
    folder.claim(70, "600", index=1)
    assert (used(first), used(second)) == ({}, {70: 600})


def test_claims_folder_is_made_and_made_again(folder: Folder) -> None:
    """Z1: berthd makes `claims/<index>`; a claimer may too, so it may also be missing."""
    source = folder.open()
    claims = folder.path / "claims" / "0"
    assert claims.is_dir()
    claims.rmdir()
    assert used(source) == {}
    folder.runs(70)
    folder.claim(70, "5")
    assert used(source) == {70: 5}


def test_folder_that_a_claimer_made_is_taken_as_it_is(folder: Folder) -> None:
    """Z1: an engine may come before berthd."""
    (folder.path / "claims" / "0").mkdir(parents=True)
    folder.runs(70)
    folder.claim(70, "5")
    assert used(folder.open()) == {70: 5}


def test_reading_says_when_the_look_began(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """B3: only memory freed before it can be missing from it."""
    clock = iter([5.0, 9.0])
    monkeypatch.setattr("berth.probes.simulated.time.monotonic", lambda: next(clock))
    source = folder.open()
    assert reading(source.read()).taken == 5.0


def test_claim_of_this_process_is_shown_with_name_and_parents(tmp_path: Path) -> None:
    """B6: a row carries what a lease is found by; with the real /proc."""
    folder = Folder(tmp_path)
    folder.declare("[[card]]\ntotal_mib = 1000\n")
    source = folder.open()
    folder.claim(os.getpid(), "5")
    (row,) = reading(source.read()).processes
    assert (row.process, row.used) == (identify(os.getpid()), 5)
    assert row.name
    assert [process.pid for process in row.ancestors][:1] in ([os.getppid()], [])
    source.close()
