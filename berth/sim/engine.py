"""A simulated engine: it loads, works, misbehaves as it is told, and ends (Z2).

The main thread loads and waits for the word to end; calls are answered in threads of their own.
Order at the start: the flags are checked, the port is bound (as llama-server does, before it
loads), the keeper is forked while there is no thread, then come signals and calls.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Final

from berth.errors import Exit, usage_error
from berth.probes.simulated import declared_cards
from berth.sim.endings import Ending
from berth.sim.keeper import fork_slow_release, fork_stray
from berth.sim.llama import LlamaSite
from berth.sim.memory import Memory, claimed_on
from berth.sim.play import EngineFlags, Play
from berth.sim.serving import HOST, EngineServer, Site, listen
from berth.sim.work import Work

KINDS: Final[Mapping[str, Callable[[Play], Site] | None]] = {
    "llama": LlamaSite,
    "plain": None,
}
"""What each kind serves; None: nothing, it is a job."""

_LOAD_STEPS: Final = 10
_MOMENT: Final = 0.1  # seconds from an unload's answer to the end of the process
_LOOK_AGAIN: Final = 0.01  # seconds
_LONGEST: Final = 86400.0  # seconds; what every way of waiting can count
_FAILED: Final = 1


def play_engine(flags: EngineFlags) -> int:
    """Play an engine to its end, and return its exit status.

    Raises:
        BerthError: the flags are wrong, the port is taken, or the claim cannot be written.
    """
    make_site = _check(flags)
    total = _total_mib(flags) if flags.oom else None
    server = None if make_site is None else listen(flags.port)
    memory = Memory(flags.folder, flags.card, _fork_keeper(flags))
    play = Play(flags, memory, Work(flags.slots, flags.token_s))
    _hear_signals(play)
    _crash_later(flags)
    if server is not None and make_site is not None:
        server.begin(make_site(play))
        sys.stdout.write(f"listening on http://{HOST}:{server.server_port}\n")
        sys.stdout.flush()
    try:
        return _live(play, server, total)
    finally:
        memory.release()


def _check(flags: EngineFlags) -> Callable[[Play], Site] | None:
    """Return what the kind serves."""
    if flags.kind not in KINDS:
        raise usage_error(f"no engine of kind {flags.kind!r}", f"there are: {', '.join(KINDS)}")
    if flags.double_fork and flags.release_lag_s:
        raise usage_error(
            "--double-fork and --release-lag each have another process keep the memory"
        )
    spans = (flags.token_s, flags.cut_after_s, flags.load_s, flags.release_lag_s)
    ends = (flags.run_s or 0.0, flags.crash_after_s or 0.0)
    if max(*spans, *ends) > _LONGEST:
        raise usage_error("no time of a simulated engine is longer than a day")
    return KINDS[flags.kind]


def _total_mib(flags: EngineFlags) -> int:
    cards = declared_cards(flags.folder)
    if flags.card >= len(cards):
        raise usage_error(
            f"{flags.folder} declares no card {flags.card}, so --oom knows no size of it"
        )
    return cards[flags.card].total_mib


def _fork_keeper(flags: EngineFlags) -> int | None:
    """Return the pid of who keeps the memory, None for the engine itself."""
    if flags.double_fork:
        return fork_stray(ignore_sigterm=flags.ignore_sigterm)
    if flags.release_lag_s:
        return fork_slow_release(flags.folder, flags.card, flags.release_lag_s)
    return None


def _hear_signals(play: Play) -> None:
    if play.flags.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        play.endings.hear([signal.SIGINT])
    else:
        play.endings.hear([signal.SIGINT, signal.SIGTERM])


def _crash_later(flags: EngineFlags) -> None:
    """End without a word after a while; the claim is left for the death of the pid to free."""
    if flags.crash_after_s is not None:
        crash = threading.Timer(flags.crash_after_s, os._exit, (_FAILED,))
        crash.daemon = True
        crash.start()


def _live(play: Play, server: EngineServer | None, total: int | None) -> int:
    flags = play.flags
    ending = _load(play)
    if ending is None:
        if total is not None and claimed_on(flags.folder, flags.card) > total:
            return _run_out_of_memory(flags)
        play.loaded = True
        ending = play.endings.next(within=flags.run_s)
    if ending is Ending.UNLOADED:
        play.endings.next(within=_MOMENT)
    if ending is Ending.STOP and server is not None:
        server.stop_listening()
        return _stop(play)
    return int(Exit.OK)


def _load(play: Play) -> Ending | None:
    """Claim the memory step by step; the word to end cuts it short."""
    steps = _LOAD_STEPS if play.flags.load_s else 1
    for step in range(1, steps + 1):
        ending = play.endings.next(within=play.flags.load_s / steps)
        if ending is not None:
            return ending
        play.memory.hold(play.flags.mib * step // steps)
    return None


def _run_out_of_memory(flags: EngineFlags) -> int:
    sys.stderr.write(
        f"ggml_backend_cuda_buffer_type_alloc_buffer: allocating {flags.mib}.00 MiB"
        f" on device {flags.card}: cudaMalloc failed: out of memory\n"
    )
    return _FAILED


def _stop(play: Play) -> int:
    """Stop as llama-server was measured to: at once when idle, else when what is in flight is cut.

    A second word to stop ends it at once, as a failure.
    """
    play.work.stop()
    while play.work.in_flight:
        if play.endings.next(within=_LOOK_AGAIN) is Ending.STOP:
            return _FAILED
    return int(Exit.OK)
