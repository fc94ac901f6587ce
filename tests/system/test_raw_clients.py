"""The raw clients of examples/raw, at work: other languages speak the protocol as it is written."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from berth.paths import socket_path
from tests.system.node import Node, wait_for

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
RAW = ROOT / "examples" / "raw"
INSTALLED = ROOT / ".node"


def _node_client(folder: Path) -> list[str]:
    """Return the node.js client's command, with its library installed once for all runs."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node or npm is not installed")
    with (ROOT / ".node.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may install it just now
        _install(npm, (RAW / "package.json").read_text())
    client = folder / "client.mjs"
    client.write_text((RAW / "client.mjs").read_text())
    (folder / "node_modules").symlink_to(INSTALLED / "node_modules")
    return [node, str(client)]


def _install(npm: str, package: str) -> None:
    """Install what package.json names, unless that was done; its copy is written last."""
    done = INSTALLED / "installed.json"
    if done.exists() and done.read_text() == package:
        return
    INSTALLED.mkdir(exist_ok=True)
    (INSTALLED / "package.json").write_text(package)
    quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([npm, "install", *quiet], cwd=INSTALLED, timeout=90.0, check=True)
    done.write_text(package)


@pytest.fixture(params=["python", "node"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Return the command of a raw client in that language."""
    if request.param == "python":
        return [sys.executable, str(RAW / "client.py")]
    return _node_client(tmp_path)


def start(node: Node, client: list[str], *arguments: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [*client, *arguments],
        env=node.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    node.processes.append(process)
    return process


def test_raw_client_leases_works_and_releases(node: Node, client: list[str]) -> None:
    """From asking to releasing, with nobody else about."""
    told = start(node, client, "raw", "14000", "3").communicate(timeout=30.0)[0]
    assert "granted: L1\nreleased: L1\n" in told
    kinds = [event["kind"] for event in node.events() if event["lease"] == "L1"]
    assert kinds[:3] == ["lease.granted", "lease.started", "lease.released"]


def test_raw_client_waits_and_gives_way(node: Node, client: list[str]) -> None:
    """Queued behind a job, told why; granted when it ends; asked, and gone at its boundary."""
    job = node.run("--as", "job", "--needs-mib", "20000", "--", "sleep", "60")
    node.wait_state("job", "running")
    raw = start(node, client, "raw", "14000", "300")
    wait_for(lambda: node.waiter("raw") is not None or node.events("lease.draining"))
    node.wait_state("raw", "running")
    job.wait(timeout=20.0)
    urgent = node.berth(
        *("run", "--as", "urgent", "--priority", "foreground", "--needs-mib", "14000"),
        *("--", "echo", "mine"),
    )
    assert urgent.stdout == "mine\n"
    told = raw.communicate(timeout=20.0)[0]
    assert raw.returncode == 0, told
    assert "waiting: " in told
    assert told.endswith("wanted: for urgent\nreleased: L2\n")


def test_raw_client_that_is_refused_says_why(node: Node, client: list[str]) -> None:
    """The code for programs, the sentence for people."""
    raw = start(node, client, "raw", "99999", "3")
    assert "too_big: 97.7 GiB is more than gpu0 can hand out" in raw.communicate(timeout=30.0)[0]
    assert raw.returncode == 1


_TELLS_WHERE = """
DEALER = LINGER = 0

class Context:
    def socket(self, kind): return self
    def set(self, option, value): pass
    def connect(self, address): raise SystemExit(address)
"""


@pytest.mark.parametrize(
    "named", [{}, {"XDG_RUNTIME_DIR": "/x"}, {"BERTH_SOCKET": "/b.sock", "XDG_RUNTIME_DIR": "/x"}]
)
def test_raw_client_looks_where_berthd_is(named: dict[str, str], tmp_path: Path) -> None:
    """Its page promises the same places as every client has; cron has none of the variables."""
    (tmp_path / "zmq.py").write_text(_TELLS_WHERE)
    ended = subprocess.run(
        [sys.executable, str(RAW / "client.py"), "raw", "1", "1"],
        env={"PYTHONPATH": str(tmp_path), **named},
        capture_output=True,
        text=True,
        timeout=30.0,
        check=False,
    )
    assert ended.stderr == f"ipc://{socket_path(None, named)}\n"
