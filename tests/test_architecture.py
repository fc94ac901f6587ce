"""The house keeps its shape: a file touches what its place says it may, and nothing else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.actors.topology import MAY_TELL

ROOT = Path(__file__).parents[1]
BERTH = ROOT / "berth"

SHELLS = {
    "actors/base.py",
    "actors/ticker.py",
    "actors/node/socket.py",
    "actors/node/codec.py",
    "actors/trees/exits.py",
    "actors/journal/event_rows.py",
    "actors/journal/sqlite_file.py",
    "actors/journal/store.py",
    "actors/journal/usage_files.py",
}
"""Files beside the actors that touch the world: the rest of `actors/` is pure but for actor.py."""

PURE = {
    "units.py",
    "visible.py",
    "ids.py",
    "lease.py",
    "readings.py",
    "standing.py",
    "views.py",
    "errors.py",
    "cards.py",
    "wire.py",
    "words.py",
    "client/core.py",
    "client/messages.py",
    "client/said.py",
    "client/state.py",
    "run/core.py",
    "run/drain.py",
    "run/asking.py",
    "run/ending.py",
    "run/state.py",
    "run/messages.py",
    "probes/core.py",
    "probes/messages.py",
    "probes/xids.py",
    "engines/llama.py",
}

NOT_IN_A_CORE = {
    "asyncio",
    "http",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "psutil",
    "pykka",
    "pynvml",
    "queue",
    "random",
    "secrets",
    "select",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uuid",
    "zmq",
}

BANNED_NAMES = re.compile(r"\b(\w*(Manager|Helper|Util|Service)|Data|Info)\b")


def name_of(path: Path) -> str:
    return path.relative_to(BERTH).as_posix()


def all_files() -> list[Path]:
    return sorted(BERTH.rglob("*.py"))


def pure_files() -> list[Path]:
    actors = [
        path
        for path in (BERTH / "actors").rglob("*.py")
        if path.name != "actor.py" and name_of(path) not in SHELLS
    ]
    return sorted([*actors, *(BERTH / name for name in PURE)])


def imports(path: Path) -> Iterator[str]:
    """Return every module that a file imports, however deep it does so."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""


@pytest.mark.parametrize("path", pure_files(), ids=name_of)
def test_core_touches_neither_clock_nor_disk_nor_threads(path: Path) -> None:
    """Same state, same event, same time: same decision. Only then can a run be replayed."""
    banned = {module for module in imports(path) if module.split(".")[0] in NOT_IN_A_CORE}
    if name_of(path) in {"run/state.py", "run/drain.py"}:
        banned -= {"signal"}  # the numbers of signals, no more
    assert banned == set()


@pytest.mark.parametrize("path", pure_files(), ids=name_of)
def test_core_imports_nothing_that_touches_the_world(path: Path) -> None:
    """A pure file that imports a shell would be one itself."""
    pure = {name_of(file) for file in pure_files()}
    for module in imports(path):
        if module.startswith("berth."):
            file = module.removeprefix("berth.").replace(".", "/") + ".py"
            package = BERTH / module.removeprefix("berth.").replace(".", "/")
            if (BERTH / file).exists():
                assert file in pure | {"actors/base.py"}, f"{name_of(path)} imports {module}"
            else:
                assert package.is_dir()


def test_every_actor_folder_has_the_same_three_files() -> None:
    """Who knows one actor knows where everything of another is."""
    for folder in (BERTH / "actors").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            names = {path.name for path in folder.glob("*.py")}
            assert {"messages.py", "core.py", "actor.py"} <= names, folder.name


def test_actors_only_tell() -> None:
    """An actor that waits for another can deadlock with it."""
    for path in [*(BERTH / "actors").rglob("*.py"), *(BERTH / "probes").rglob("*.py")]:
        found = re.findall(r"\.ask\(|\.proxy\(|\.get\(\)", path.read_text())
        allowed = 1 if path.name == "exits.py" else 0  # a SimpleQueue of its own thread
        assert len(found) <= allowed, path


def test_actor_is_given_only_addresses_that_its_row_allows() -> None:
    """A shortcut between two actors shows up as a constructor argument."""
    files = {role: BERTH / "actors" / role / "actor.py" for role in MAY_TELL if role != "probe"}
    files["probe"] = BERTH / "probes" / "actor.py"
    known = {"node", "card", "cards", "journal", "probe", "trees", "supervisor"}
    for role, path in files.items():
        classes = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.ClassDef)]
        for function in [f for c in classes for f in c.body if isinstance(f, ast.FunctionDef)]:
            if function.name == "__init__":
                given = {argument.arg for argument in function.args.kwonlyargs} & known
                told = {name.rstrip("s") if name == "cards" else name for name in given} - {role}
                assert told <= MAY_TELL[role], (role, told)


def test_bytes_become_mib_in_one_place() -> None:
    """Rounding is decided once: what is used rounds up, room rounds down."""
    for path in all_files():
        if name_of(path) == "units.py":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "1024" in line:
                assert "#" in line or '"' in line or "tolerate" in line, f"{path}:{number}: {line}"


def test_no_file_is_called_by_what_it_is_not() -> None:
    """Everything has a place that says what it is about."""
    banned = {"utils.py", "util.py", "helpers.py", "common.py", "manager.py", "models.py"}
    assert not [path for path in all_files() if path.name in banned]
    for path in all_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                assert not BANNED_NAMES.fullmatch(node.name), f"{path}: {node.name}"


def test_files_and_functions_stay_readable() -> None:
    """Guidance with a limit: beyond these sizes something has leaked in."""
    long_files = {name_of(p): n for p in all_files() if (n := p.read_text().count("\n")) > 400}
    long_functions = {}
    for path in all_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > 70:
                    long_functions[f"{name_of(path)}:{node.name}"] = length
    assert long_files == {}
    # A verb of the command line has a parameter for every flag.
    assert set(long_functions) <= {"cli/run.py:run"}, long_functions


def test_any_stands_only_where_it_must() -> None:
    """Pykka's references are untyped; so is JSON before it was checked. Nothing else is."""
    allowed = {
        "actors/base.py",
        "actors/supervisor/actor.py",
        "actors/ticker.py",
        "actors/journal/store.py",
        "daemon.py",
        "config.py",
        "wire.py",
        "probes/nvml.py",
    }
    folders = ("cli/", "client/", "run/", "sim/", "demo/")
    for path in all_files():
        name = name_of(path)
        if "Any" in set(re.findall(r"\bAny\b", path.read_text())) and not name.startswith(folders):
            assert name in allowed, name


def test_tests_never_sleep() -> None:
    """A sleep is a guess; a test waits for what it wants to see, with a deadline."""
    for path in (ROOT / "tests").rglob("*.py"):
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}
        ]
        assert calls == [], path


def test_every_test_says_why_it_exists() -> None:
    """A failing test that nobody understands gets deleted."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                assert ast.get_docstring(node), f"{path}: {node.name}"
