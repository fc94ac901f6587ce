"""What only a real card and its driver can show."""

import subprocess
import sys
from pathlib import Path
from typing import IO

import pynvml
import pytest

from berth.probes.nvidia_cards import FoundCards
from tests.gpu.conftest import GpuNode
from tests.system.node import wait_for

pytestmark = [pytest.mark.gpu, pytest.mark.system, pytest.mark.timeout(180)]

PROGRAM = Path(__file__).with_name("cuda_process.py")
SLACK_MIB = 64
CONTEXT_MIB = 2048
"""More than a CUDA context takes on any card."""


def command(mib: int) -> list[str]:
    return [sys.executable, str(PROGRAM), str(mib)]


def says(process: "subprocess.Popen[bytes]", word: str) -> None:
    """Wait for a word of a process; pytest's own timeout ends the wait."""
    out: IO[bytes] | None = process.stdout
    assert out is not None
    assert out.readline().strip() == word.encode(), process.poll()


def tell(process: "subprocess.Popen[bytes]", word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{word}\n".encode())
    process.stdin.flush()


def holding(node: GpuNode, name: str, mib: int, *flags: str) -> "subprocess.Popen[bytes]":
    """Start a CUDA process under `berth run`; its stdin and stdout are ours."""
    return node.run(
        *("--as", name, "--needs-mib", str(mib + CONTEXT_MIB), "--wait", "60s", *flags),
        *("--", *command(mib)),
        stdin=subprocess.PIPE,
    )


def most(node: GpuNode) -> int:
    """Return what two cannot hold at once: more than half of what is free."""
    mib = int(node.card()["free_mib"] * 0.6)
    if mib + CONTEXT_MIB > node.card()["free_mib"]:
        pytest.skip(f"too little is free on the card: {node.card()['free_mib']} MiB")
    return mib


def must_name_processes(node: GpuNode) -> None:
    why = node.card()["why"]
    if why is not None:
        pytest.skip(why)


def test_figures_are_those_of_the_driver(found: FoundCards, node: GpuNode) -> None:
    """B1: the card's size and use as NVML tells them to anybody."""
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(found.cards[0].identity.pci)
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
        uuid = pynvml.nvmlDeviceGetUUID(handle)
    finally:
        pynvml.nvmlShutdown()
    shown = node.card()
    assert shown["state"] == "ok"
    assert shown["uuid"] == uuid
    assert shown["total_mib"] == memory.total // 2**20
    assert abs(shown["free_mib"] - memory.free // 2**20) <= SLACK_MIB
    assert shown["temperature_c"] is None or 0 < shown["temperature_c"] < 120


def test_process_without_a_lease_is_shown_while_it_lives(node: GpuNode) -> None:
    """C3: by its pid and what it holds; gone with it."""
    must_name_processes(node)
    stranger = subprocess.Popen(command(1024), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        says(stranger, "holds")

        def seen() -> bool:
            rows = node.status()["stowaways"]
            return any(r["pid"] == stranger.pid and r["used_mib"] >= 1024 for r in rows)

        wait_for(seen)
    finally:
        stranger.communicate(timeout=60)
    wait_for(lambda: all(r["pid"] != stranger.pid for r in node.status()["stowaways"]))


def test_memory_is_seen_to_come_and_go(node: GpuNode) -> None:
    """B1: a reading follows what a process takes and frees, while it lives."""
    run = holding(node, "chat", 1024)
    says(run, "holds")
    full = wait_for(lambda: _used(node, "chat", at_least=1024))
    tell(run, "free")
    says(run, "freed")
    wait_for(lambda: node.card()["used_mib"] <= full - 1024 + SLACK_MIB)
    tell(run, "take")
    says(run, "holds")
    wait_for(lambda: node.card()["used_mib"] >= full - SLACK_MIB)
    assert run.poll() is None
    run.communicate(timeout=60)
    assert run.returncode == 0
    node.wait_gone("chat")


def _used(node: GpuNode, name: str, at_least: int) -> int:
    """Return what the card shows used, once the lease holds that much; 0 until then."""
    lease = node.lease(name)
    blind = node.card()["why"] is not None
    holds = lease is not None and ((lease["used_mib"] or 0) >= at_least or blind)
    return int(node.card()["used_mib"]) if holds else 0


def test_killed_holder_frees_the_card_by_the_reading(node: GpuNode) -> None:
    """R5, H1: nobody said that it released; the driver shows it."""
    before = node.card()["used_mib"]
    run = holding(node, "chat", 1024)
    says(run, "holds")
    node.wait_state("chat", "running", "starting")
    run.kill()
    run.wait(timeout=60)
    node.wait_gone("chat", within=60.0)
    wait_for(lambda: node.card()["used_mib"] <= before + SLACK_MIB)
    assert node.events("lease.stuck") == []


def test_card_is_handed_over_between_two_that_cannot_both_fit(node: GpuNode) -> None:
    """H1: each takes more than half of the card, three times, and none is ever out of memory."""
    mib = most(node)
    for number in range(3):
        job = holding(node, f"job{number}", mib, "--priority", "batch")
        says(job, "holds")
        engine = holding(node, f"engine{number}", mib, "--priority", "foreground")
        says(engine, "holds")
        assert job.wait(timeout=60) == 143
        engine.communicate(timeout=60)
        assert engine.returncode == 0
        node.wait_gone(f"engine{number}", within=60.0)
    told = [(event["kind"], event["name"]) for event in node.events("lease.granted", "lease.freed")]
    for number in range(3):
        freed = told.index(("lease.freed", f"job{number}"))
        assert freed < told.index(("lease.granted", f"engine{number}"))
    assert node.events("lease.contested", "lease.stuck") == []
