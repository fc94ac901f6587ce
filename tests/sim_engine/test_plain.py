"""A job without HTTP: how it loads, ends, and what it leaves claimed (Z2)."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sim_engine.playing import WITHIN, Engine, claims, is_alive, until

pytestmark = pytest.mark.system

Play = Callable[..., Engine]


def test_it_claims_for_itself_and_gives_back_on_sigterm(play: Play) -> None:
    """A stopped job is told from a crashed one by its status, and leaves no claim."""
    job = play("plain", "--mib", 600)
    job.wait_claimed(600)
    assert job.claims() == {job.pid: 600}
    job.signal(signal.SIGTERM)
    assert job.ends() == 0
    assert job.claims() == {}


def test_run_s_is_the_length_of_a_job(play: Play) -> None:
    """Scenes need jobs that end by themselves."""
    job = play("plain", "--mib", 600, "--run-s", 0.2)
    job.wait_claimed(600)
    assert job.ends() == 0
    assert job.claims() == {}


def test_crash_leaves_the_claim_to_the_death_of_the_pid(play: Play) -> None:
    """Nobody cleans up after a crash, so Berth has to see that the pid is gone."""
    job = play("plain", "--mib", 600, "--crash-after", "0.3s")
    job.wait_claimed(600)
    assert job.ends() == 1
    assert job.claims() == {job.pid: 600}


def test_memory_grows_while_it_loads(play: Play) -> None:
    """A card fills in steps, and Berth reads it in between."""
    job = play("plain", "--mib", 600, "--load-s", 0.5)
    seen: list[int] = []

    def full() -> bool:
        seen.append(job.claimed() or 0)
        return seen[-1] == 600

    until(full, "all is claimed")
    assert seen == sorted(seen)
    assert len(set(seen)) > 3


def test_sigterm_ends_it_while_it_loads(play: Play) -> None:
    """A drain may strike an engine that is not ready yet."""
    job = play("plain", "--mib", 600, "--load-s", 60)
    until(lambda: _catches(job.pid, signal.SIGTERM), "it hears signals")
    job.signal(signal.SIGTERM)
    assert job.ends() == 0


def test_ignored_sigterm_does_nothing(play: Play) -> None:
    """The grace and SIGKILL are there for such an engine; its own end shows that it lived on."""
    job = play("plain", "--mib", 600, "--ignore-sigterm", "--crash-after", 0.6)
    job.wait_claimed(600)
    job.signal(signal.SIGTERM)
    assert job.ends() == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_release_lag_outlives_the_whole_group(play: Play, number: signal.Signals) -> None:
    """A driver frees late, whoever ended the engine and however; the sum never moves before."""
    lag = 0.6
    job = play("plain", "--mib", 600, "--release-lag", lag)
    job.wait_claimed(600)
    (keeper,) = job.claims()
    assert keeper != job.pid
    os.killpg(job.pid, number)
    assert job.ends() == (0 if number is signal.SIGTERM else -number)
    ended = time.monotonic()
    assert (job.claims(), is_alive(keeper)) == ({keeper: 600}, True)
    until(lambda: not is_alive(keeper), "the memory is free")
    assert time.monotonic() - ended > lag / 2
    assert job.claims() == {}


def test_stray_worker_has_the_memory_and_stays(play: Play) -> None:
    """A worker that left group and session is what a stop must find all the same."""
    job = play("plain", "--mib", 600, "--double-fork")
    job.wait_claimed(600)
    (stray,) = job.claims()
    assert os.getsid(stray) not in {stray, os.getsid(job.pid)}
    os.killpg(job.pid, signal.SIGTERM)
    assert job.ends() == 0
    assert (job.claims(), is_alive(stray)) == ({stray: 600}, True)
    os.kill(stray, signal.SIGTERM)
    until(lambda: not is_alive(stray), "the stray worker is gone")


def test_stray_worker_ignores_sigterm_too(play: Play) -> None:
    """Such a worker goes by SIGKILL only."""
    job = play("plain", "--mib", 600, "--double-fork", "--ignore-sigterm")
    job.wait_claimed(600)
    (stray,) = job.claims()
    assert _is_in_mask(stray, "SigIgn", signal.SIGTERM)


def test_keepers_hold_no_pipe_of_the_engine_open(play: Play) -> None:
    """Who reads an engine's output to its end must not wait for what outlives it."""
    job = play("plain", "--mib", 600, "--double-fork", "--run-s", 0)
    out, errors = job.process.communicate(timeout=WITHIN)
    assert (job.process.returncode, out, errors) == (0, "", "")
    assert [is_alive(pid) for pid in job.claims()] == [True]


def test_out_of_memory_where_the_card_is_overfull(play: Play) -> None:
    """What a collision looks like to its victim: CUDA's words, and exit 1."""
    play("plain", "--mib", 600).wait_claimed(600)
    second = play("plain", "--mib", 401, "--oom")
    assert second.ends() == 1
    assert "out of memory" in second.errors()
    assert second.claimed() is None


def test_no_out_of_memory_where_it_fits(play: Play) -> None:
    """A full card is not overfull; the claims of the dead count for nothing."""
    crashed = play("plain", "--mib", 500, "--crash-after", 0)
    assert crashed.ends() == 1
    play("plain", "--mib", 600).wait_claimed(600)
    assert play("plain", "--mib", 400, "--oom", "--run-s", 0).ends() == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--card", "1", "--oom"], "declares no card 1"),
        (["--double-fork", "--release-lag", "1"], "--release-lag"),
        (["--load-s", "100h"], "longer than a day"),
        (["--load-s", "nan"], "is no duration"),
        (["--residual", "-1"], "--residual"),
    ],
)
def test_wrong_flags_are_told_in_a_sentence(play: Play, flags: list[str], said: str) -> None:
    """What a person did wrong is exit 64, never a traceback."""
    job = play("plain", "--mib", 600, *flags)
    assert job.ends() == 64
    errors = job.errors()
    assert said in errors
    assert "Traceback" not in errors


def test_unknown_kind_names_the_kinds(play: Play, tmp_path: Path) -> None:
    """A kind that is not there yet leaves nothing behind."""
    job = play("steam", "--mib", 600, "--double-fork")
    assert job.ends() == 64
    assert "llama, plain" in job.errors()
    assert claims(tmp_path) == {}


def _catches(pid: int, number: signal.Signals) -> bool:
    return _is_in_mask(pid, "SigCgt", number)


def _is_in_mask(pid: int, mask: str, number: signal.Signals) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{mask}:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False
