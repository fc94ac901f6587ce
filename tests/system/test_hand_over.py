"""Two real llama-servers share one card: nothing collides, nothing is cut."""

import subprocess

import pytest

from tests.system.llama import Chat, Llama, free_port, wait_until_healthy
from tests.system.node import Node, Sampler

HAND_OVERS = 20
MIB = 14000
TOTAL = 24576 - 421

pytestmark = pytest.mark.system


@pytest.mark.timeout(300)
def test_two_llama_servers_hand_a_card_over_twenty_times(node: Node, llama: Llama) -> None:
    """H1: every chat ends with its [DONE], nothing overlaps, no grant before the card is free."""
    sampler = Sampler(node.sim, TOTAL)
    sampler.start()
    chats: list[Chat] = []
    holder = _start(node, llama, 0)
    for number in range(1, HAND_OVERS + 1):
        in_flight = [Chat(holder.port, tokens=300 + 40 * (number % 5)) for _ in range(2)]
        for chat in in_flight:
            chat.start()
        for chat in in_flight:
            assert chat.begun.wait(30.0)
        chats += in_flight
        rival = _start(node, llama, number)
        assert holder.process.wait(timeout=30.0) == 143, "Berth's signal ended the holder"
        for chat in in_flight:
            chat.join(timeout=30.0)
        holder = rival
    sampler.stop()
    cut = [(chat.port, chat.chunks, chat.trouble) for chat in chats if not chat.whole]
    assert cut == []
    assert len(chats) == 2 * HAND_OVERS
    assert sampler.samples > 100
    assert sampler.overdrawn == []
    _check_order(node)


class _Engine:
    """One llama-server under `berth run`, healthy."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self.process = process
        self.port = port


def _start(node: Node, llama: Llama, number: int) -> _Engine:
    port = free_port()
    process = node.run(
        *("--as", f"chat-{number}", "--needs-mib", str(MIB), "--wait", "60s"),
        *("--drain-slots", f"http://127.0.0.1:{port}", "--"),
        *node.claiming(MIB, *llama.command(port)),
        stdout=subprocess.DEVNULL,
    )
    assert wait_until_healthy(port, process), process.stderr
    return _Engine(process, port)


def _check_order(node: Node) -> None:
    """Every grant but the first comes after the freeing of the lease before it, by the reading."""
    told = node.events("lease.granted", "lease.freed")
    kinds = [(event["kind"], event["name"]) for event in told]
    for number in range(1, HAND_OVERS + 1):
        freed = kinds.index(("lease.freed", f"chat-{number - 1}"))
        assert freed < kinds.index(("lease.granted", f"chat-{number}"))
    assert node.events("lease.stuck", "lease.contested", "lease.refused") == []
