"""Processes as the kernel shows them in /proc: told from each other, their trees, their scopes."""

import os
import shutil
from pathlib import Path

import pytest

from berth.ids import ProcessId
from berth.probes.procfs import (
    ProcessTable,
    all_pids,
    ancestors,
    environment_value,
    identify,
    is_alive,
    is_or_descends,
    program_name,
    read_process,
    scope_of,
)


class FakeProc:
    """A tree like /proc, with the files that are read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "self").mkdir()
        (root / "meminfo").touch()

    def add(
        self,
        pid: int,
        parent: int = 1,
        start: int = 100,
        name: str = "engine",
        state: str = "S",
        **files: str,
    ) -> ProcessId:
        """Start a process; `files` are cgroup, cmdline, environ."""
        folder = self.root / f"new-{pid}"
        folder.mkdir()
        between = "0 " * 17  # fields 5 to 21 of proc(5), which Berth does not read
        stat = f"{pid} ({name}) {state} {parent} {between}{start} 4096 0\n"
        (folder / "stat").write_text(stat)
        for file, text in files.items():
            (folder / file).write_text(text)
        old = self.root / str(pid)
        if old.exists():  # another process of the same pid: moved in, so that its inode is another
            old.rename(self.root / f"old-{pid}")
        folder.rename(old)
        return ProcessId(pid, start)

    def end(self, pid: int) -> None:
        shutil.rmtree(self.root / str(pid))


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


# --- who is that ----------------------------------------------------------------------------------


def test_process_is_known_by_pid_and_start_time(proc: FakeProc) -> None:
    """S4, R5: pids are handed out again; with the start time a process is itself."""
    first = proc.add(70, start=100)
    assert identify(70, proc.root) == first
    assert is_alive(first, proc.root)
    proc.add(70, start=200)
    assert identify(70, proc.root) == ProcessId(70, 200)
    assert not is_alive(first, proc.root)


@pytest.mark.parametrize(
    "name", ["engine", "my engine", "a) S 9", "((", "))", ") R 1 (", "", "Web Content"]
)
def test_name_may_hold_any_character(proc: FakeProc, name: str) -> None:
    """A program may call itself `a) S 9`; fields count from the last parenthesis."""
    proc.add(70, parent=5, start=123, name=name)
    facts = read_process(70, proc.root)
    assert facts is not None
    assert (facts.name, facts.parent, facts.process.start) == (name, 5, 123)
    assert not facts.dead


@pytest.mark.parametrize(
    ("state", "dead"),
    [("R", False), ("S", False), ("D", False), ("T", False), ("Z", True), ("X", True)],
)
def test_zombie_is_dead(proc: FakeProc, state: str, dead: bool) -> None:
    """Z1, R5: a zombie holds nothing; a stopped process or one in the driver does."""
    process = proc.add(70, state=state)
    assert is_alive(process, proc.root) is not dead


def test_nobody_has_a_pid_that_is_not_there(proc: FakeProc) -> None:
    """A process may end between two looks: that is no error."""
    assert read_process(70, proc.root) is None
    assert identify(70, proc.root) is None
    assert not is_alive(ProcessId(70, 1), proc.root)
    assert ancestors(70, proc.root) == ()
    assert program_name(70, proc.root) == ""
    assert scope_of(70, proc.root) is None
    assert environment_value(70, "A", proc.root) is None


# --- parents --------------------------------------------------------------------------------------


def test_ancestors_are_the_nearest_first_up_to_init(proc: FakeProc) -> None:
    """B6: a process belongs to a lease by the wrapper's process tree."""
    init = proc.add(1, parent=0, start=1)
    shell = proc.add(50, parent=1, start=2)
    wrapper = proc.add(60, parent=50, start=3)
    proc.add(70, parent=60, start=4)
    assert ancestors(70, proc.root) == (wrapper, shell, init)


def test_ancestors_end_where_a_parent_is_gone(proc: FakeProc) -> None:
    """A parent that ended meanwhile cuts the line short, and that is all."""
    wrapper = proc.add(60, parent=50)
    proc.add(70, parent=60)
    assert ancestors(70, proc.root) == (wrapper,)


def test_line_of_parents_comes_to_an_end_whatever_is_read(proc: FakeProc) -> None:
    """Pids that change hands while they are read can make a ring."""
    proc.add(60, parent=70)
    proc.add(70, parent=60)
    assert len(ancestors(70, proc.root)) == 64


def test_process_is_its_own_or_a_descendant(proc: FakeProc) -> None:
    """S4: pids named in a message must be the peer's own or descend from it."""
    wrapper = proc.add(60, parent=1, start=3)
    proc.add(70, parent=60, start=4)
    other = proc.add(80, parent=1, start=5)
    assert is_or_descends(60, wrapper, proc.root)
    assert is_or_descends(70, wrapper, proc.root)
    assert not is_or_descends(70, other, proc.root)
    assert not is_or_descends(60, ProcessId(70, 4), proc.root)
    assert not is_or_descends(70, ProcessId(60, 99), proc.root)


# --- what people call it, where it runs -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cmdline", "shown"),
    [
        ("llama-server", "/opt/llama-server\0-m\0a.gguf\0", "llama-server"),
        ("text-generation", "/opt/text-generation-launcher\0--port\0", "text-generation-launcher"),
        ("text-generation", "", "text-generation"),
        ("text-generation", "python\0/opt/text-generation-launcher\0", "text-generation"),
        ("text-generation", None, "text-generation"),
        ("evil\x1b[2J", "", "evil\ufffd[2J"),
        ("text-generation", "text-generation\x1b[2J\0", "text-generation\ufffd[2J"),
    ],
)
def test_name_that_was_cut_off_is_completed(
    proc: FakeProc, name: str, cmdline: str | None, shown: str
) -> None:
    """C3: a stowaway is named by process; the kernel keeps 15 letters of it."""
    proc.add(70, name=name)
    if cmdline is not None:
        (proc.root / "70" / "cmdline").write_text(cmdline)
    assert program_name(70, proc.root) == shown


@pytest.mark.parametrize(
    ("cgroup", "scope"),
    [
        ("0::/user.slice/user@1000.service/app.slice/berth-L7.scope\n", "berth-L7.scope"),
        ("0::/user.slice/berth-L7.scope/inner\n", "berth-L7.scope"),
        ("12:cpu:/x\n1:name=systemd:/user.slice/berth-L12.scope\n", "berth-L12.scope"),
        ("0::/user.slice/session-1.scope\n", None),
        ("0::/berth-L7.service\n", None),
        ("0::/\n", None),
    ],
)
def test_scope_is_read_from_the_cgroup(proc: FakeProc, cgroup: str, scope: str | None) -> None:
    """B6, R1: a process belongs to a lease by its scope `berth-<lease>.scope`."""
    proc.add(70, cgroup=cgroup)
    assert scope_of(70, proc.root) == scope


def test_mark_of_a_run_is_read_from_the_environment(proc: FakeProc) -> None:
    """R5: what a dead wrapper left is found by its mark; a longer name is another variable."""
    proc.add(70, environ="BERTH_RUN_X=no\0A=1=2\0BERTH_RUN=abc\0EMPTY=\0")
    assert environment_value(70, "BERTH_RUN", proc.root) == "abc"
    assert environment_value(70, "A", proc.root) == "1=2"
    assert environment_value(70, "EMPTY", proc.root) == ""
    assert environment_value(70, "RUN", proc.root) is None


def test_pids_are_what_is_a_number(proc: FakeProc) -> None:
    """/proc holds more than processes."""
    proc.add(70)
    proc.add(1)
    assert sorted(all_pids(proc.root)) == [1, 70]


# --- the table ------------------------------------------------------------------------------------


def test_tree_is_all_that_lives_below_the_root(proc: FakeProc) -> None:
    """B6, H3: the whole tree, the root itself left out; a sibling is nobody's."""
    wrapper = proc.add(60, start=1)
    child = proc.add(70, parent=60, start=2)
    grandchild = proc.add(71, parent=70, start=3)
    proc.add(80, start=4)
    table = ProcessTable(proc.root)
    table.look()
    assert table.trees([wrapper]) == {wrapper: frozenset({child, grandchild})}
    assert table.trees([]) == {}


def test_who_is_new_or_gone_is_seen_at_the_next_look(proc: FakeProc) -> None:
    """R5: the tree last seen is what is killed when the wrapper is gone."""
    wrapper = proc.add(60)
    table = ProcessTable(proc.root)
    table.look()
    child = proc.add(70, parent=60)
    assert table.trees([wrapper])[wrapper] == frozenset()
    table.look()
    assert (table.trees([wrapper])[wrapper], table.has(child)) == (frozenset({child}), True)
    proc.end(70)
    table.look()
    assert (table.trees([wrapper])[wrapper], table.has(child)) == (frozenset(), False)


def test_pid_that_was_handed_out_again_is_another_process(proc: FakeProc) -> None:
    """R5: its place in a tree is not the old one's."""
    wrapper = proc.add(60)
    child = proc.add(70, parent=60, start=100)
    table = ProcessTable(proc.root)
    table.look()
    proc.add(70, parent=1, start=200)
    table.look()
    assert table.trees([wrapper])[wrapper] == frozenset()
    assert (table.has(child), table.has(ProcessId(70, 200))) == (False, True)


def test_process_that_is_known_is_not_read_again(proc: FakeProc) -> None:
    """C1, spec 15: the table is read incrementally; parents are those of first sight (B6)."""
    wrapper = proc.add(60)
    child = proc.add(70, parent=60)
    table = ProcessTable(proc.root)
    table.look()
    (proc.root / "70" / "stat").unlink()
    table.look()
    assert table.trees([wrapper])[wrapper] == {child}


def test_process_that_ends_while_it_is_looked_at_is_left_out(proc: FakeProc) -> None:
    """A folder without its files is a process that has just ended."""
    (proc.root / "70").mkdir()
    table = ProcessTable(proc.root)
    table.look()
    assert not table.has(ProcessId(70, 100))


def test_tree_comes_to_an_end_whatever_is_read(proc: FakeProc) -> None:
    """A ring of parents must not hang the trees actor."""
    root = proc.add(60, parent=71)
    proc.add(70, parent=60)
    proc.add(71, parent=70)
    table = ProcessTable(proc.root)
    table.look()
    assert {process.pid for process in table.trees([root])[root]} == {70, 71}


# --- the real one ---------------------------------------------------------------------------------


def test_this_process_is_found_in_the_real_proc() -> None:
    """The fake above is only as good as its likeness."""
    pid = os.getpid()
    me = identify(pid)
    assert me is not None
    assert me.start > 0
    assert is_alive(me)
    assert is_or_descends(pid, me)
    facts = read_process(pid)
    assert facts is not None
    assert facts.parent == os.getppid()
    assert program_name(pid)
    assert pid in set(all_pids())
    table = ProcessTable()
    table.look()
    assert table.has(me)


def test_parents_of_this_process_lead_to_the_first() -> None:
    """B6: whoever started the tests is above them."""
    line = [process.pid for process in ancestors(os.getpid())]
    assert line[:1] in ([os.getppid()], [])
    table = ProcessTable()
    table.look()
    parent = identify(os.getppid())
    if parent is not None:
        assert os.getpid() in {process.pid for process in table.trees([parent])[parent]}


def test_environment_of_this_process_is_readable() -> None:
    """R5: one's own processes' marks can be read."""
    name = next(iter(Path("/proc/self/environ").read_bytes().split(b"="))).decode()
    assert environment_value(os.getpid(), name) is not None
    assert environment_value(os.getpid(), "BERTH_NO_SUCH_VARIABLE") is None
