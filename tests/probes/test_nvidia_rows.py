"""The processes in a reading of an NVIDIA card: who they are, and which rows are believed."""

import json
from collections.abc import Callable

import pytest

from berth.ids import ProcessId
from berth.probes.nvidia import NvidiaSource
from berth.probes.rows import merge_row
from tests.nvml_stub import GIB, MIB, Kind, Row, StubCard, StubDriver
from tests.probes.machines import CASES, FakeMachine, ManualClock, as_reading, figures

Install = Callable[..., StubDriver]
Watch = Callable[..., NvidiaSource]


def test_process_in_several_lists_counts_once(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """HP08: the driver names a game's memory in both lists; their sum does not exist."""
    for pid in (77, 78, 79):
        machine.process(pid, f"p{pid}")
    rows = (
        Row(77, 160_000_000, Kind.COMPUTE),
        Row(77, 160_000_000, Kind.GRAPHICS),
        Row(78, None, Kind.GRAPHICS),
        Row(78, 5 * MIB, Kind.MPS),
        Row(79, 2 * MIB, Kind.GRAPHICS),
        Row(79, 3 * MIB, Kind.MPS),
    )
    install(StubCard(used=GIB, rows=rows))
    assert figures(watch().read()) == {77: 153, 78: 5, 79: 3}


def test_row_without_a_figure_is_unmeasured(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """HP08: under Windows and WSL no process has a figure; that is not 0, and not 16 EiB."""
    case = json.loads((CASES / "HP08-nvml-processes.json").read_text())[0]["rows"]
    for row in case:
        machine.process(row["pid"], "chat.exe")
    install(StubCard(used=GIB, rows=tuple(Row(row["pid"], None) for row in case)))
    assert figures(watch().read()) == {1300: "not_told", 1301: "not_told"}


def test_pid_that_is_nobodys_is_left_out(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """HP08: swapped fields and ended processes name nobody; their memory stays in used."""
    cases = json.loads((CASES / "HP08-nvml-processes.json").read_text())
    strange = [*cases[1]["rows"], *cases[3]["rows"]]
    machine.process(9980, "the real one")
    rows = tuple(Row(row["pid"], row["usedGpuMemory"]) for row in strange)
    install(StubCard(used=9 * GIB, rows=rows))
    reading = as_reading(watch().read())
    assert reading.processes == ()
    assert reading.used == 9 * 1024 + 400


def test_rows_merge_as_the_case_says() -> None:
    """HP08: read straight from the case, figures of any size included."""
    cases = json.loads((CASES / "HP08-nvml-processes.json").read_text())
    both: dict[int, int | None] = {}
    for kind in ("compute", "graphics"):
        for row in cases[2][kind]:
            merge_row(both, row["pid"], row["usedGpuMemory"])
    assert both == {77: 160_000_000}
    merge_row(both, 77, None)
    merge_row(both, 78, None)
    assert both == {77: 160_000_000, 78: None}


def test_names_come_from_the_kernel(install: Install, watch: Watch, machine: FakeMachine) -> None:
    """HP03: the driver's tool hides names and writes commas into them; /proc does neither."""
    machine.process(4242, "python3", argv="/opt/venv/bin/python3")
    machine.process(4243, "somebody-elses-trainer", argv="/opt/somebody-elses-trainer")
    machine.process(4244, "Xwayland")
    machine.process(4245, "Chat, the app", argv="C:\\Program Files\\Chat, the app\\chat.exe")
    rows = (Row(4242, 10725 * MIB), Row(4243, None), Row(4244, None), Row(4245, None))
    install(StubCard(used=11 * GIB, rows=(*rows, Row(4246, 149 * MIB))))
    look = watch().read()
    names = {row.process.pid: row.name for row in as_reading(look).processes}
    told = {4242: 10725, 4243: "not_told", 4244: "not_told", 4245: "not_told"}
    assert figures(look) == told
    assert names == {
        4242: "python3",
        4243: "somebody-elses-trainer",
        4244: "Xwayland",
        4245: "Chat, the app",
    }


def test_parents_and_scope_tell_whose_a_process_is(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """B6: a lease finds its processes by its wrapper above them, or by their scope."""
    machine.process(10, "berth", start=1)
    machine.process(11, "sh", parent=10, start=2)
    scope = "/user.slice/berth-chat-L7.scope/inner"
    machine.process(12, "llama-server", parent=11, start=3, cgroup=scope)
    install(StubCard(used=GIB, rows=(Row(12, GIB),)))
    (row,) = as_reading(watch().read()).processes
    assert row.process == ProcessId(12, 3)
    assert row.ancestors == (ProcessId(11, 2), ProcessId(10, 1))
    assert row.scope == "berth-chat-L7.scope"


def test_process_that_becomes_another_program_is_renamed(
    install: Install, watch: Watch, machine: FakeMachine, clock: ManualClock
) -> None:
    """A pid seen between fork and exec would keep its parent's name for ever."""
    machine.process(12, "bash")
    install(StubCard(rows=(Row(12, GIB),)))
    source = watch()
    source.read()
    machine.process(12, "python3", cgroup="/berth-a-L1.scope")
    clock.later(1.0)
    (row,) = as_reading(source.read()).processes
    assert (row.name, row.scope) == ("python3", "berth-a-L1.scope")


def test_orphan_keeps_the_parents_it_had(
    install: Install, watch: Watch, machine: FakeMachine, clock: ManualClock
) -> None:
    """A wrapper that was killed leaves its engine to init; the memory is still the lease's."""
    machine.process(10, "berth", start=1)
    machine.process(12, "engine", parent=10, start=3)
    install(StubCard(rows=(Row(12, GIB),)))
    source = watch()
    source.read()
    machine.process(12, "engine", parent=1, start=3)
    clock.later(5.0)
    (row,) = as_reading(source.read()).processes
    assert row.ancestors == (ProcessId(10, 1),)


def test_pid_handed_out_again_is_another_process(
    install: Install, watch: Watch, machine: FakeMachine, clock: ManualClock
) -> None:
    """The next process of that pid must not inherit the lease of the last one."""
    machine.process(12, "old", start=3)
    install(StubCard(rows=(Row(12, GIB),)))
    source = watch()
    source.read()
    (machine.proc / "12").rename(machine.proc / "gone")
    machine.process(12, "new", start=9)
    (row,) = as_reading(source.read()).processes
    assert (row.process, row.name) == (ProcessId(12, 9), "new")


def test_container_does_not_trust_the_hosts_pids(
    install: Install, watch: Watch, machine: FakeMachine
) -> None:
    """The host's pid 12 and the container's are two processes; the memory is nobody's here."""
    machine.namespace("pid:[4026532999]")
    machine.process(12, "innocent")
    install(StubCard(used=2 * GIB, rows=(Row(12, GIB),)))
    source = watch()
    reading = as_reading(source.read())
    assert not source.trusts_pids
    assert (reading.processes, reading.used) == ((), 2 * 1024 + 400)
    assert "--pid=host" in reading.blind


def test_list_longer_than_the_room_kept_for_it_is_read_whole(
    install: Install, watch: Watch, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that does not fit is memory that would be nobody's."""
    monkeypatch.setattr("berth.probes.nvml_rows._ROOM", 2)
    pids = range(100, 107)
    for pid in pids:
        machine.process(pid, "worker")
    install(StubCard(used=GIB, rows=tuple(Row(pid, MIB) for pid in pids)))
    assert figures(watch().read()) == dict.fromkeys(pids, 1)
