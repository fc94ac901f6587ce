"""Fights over one card that people have reported, each played under one clock."""

import pytest

from tests.cases.played import Played

FAR = 400.0


def test_hs01_two_models_that_do_not_fit_together_take_turns() -> None:
    """A request of 40 s is not cut by a switch, and there is one switch a turn, not more."""
    played = Played("HS01")
    architect = played.starts("architect", reply_s=40.0)
    played.until(1)
    editor = played.starts("editor")
    played.until(2)
    again = played.starts("architect", again=2)
    played.until(43)
    assert architect.engine is not None, "it is still answering"
    assert (architect.served, editor.starts) == (True, 0)
    played.until(FAR)
    assert (architect.status, architect.may_be_cut) == (143, False)
    assert [editor.served, again.served] == [True, True]
    assert played.order("lease.granted") == [
        ("lease.granted", name) for name in ("architect", "editor", "architect")
    ]
    assert len(played.events("lease.draining")) == 2, "one switch for each that waited"
    assert played.together == set()


def test_hs02_chat_comes_between_the_jobs_of_an_image_engine() -> None:
    """The job in hand ends first; chat does not wait for the nine behind it, nor do they flap."""
    played = Played("HS02")
    job_s = played.case["engines"]["image"]["job_s"]
    image = played.starts("image", reply_s=job_s, pause_s=0.5)
    played.until(30)
    chat = played.starts("chat")
    played.until(31)
    assert played.events("lease.draining", "image"), "it is asked at once, and ends at its boundary"
    rest = played.starts("image", again=2, reply_s=job_s, pause_s=0.5)
    played.until(job_s)
    assert (image.served, image.over, chat.starts) == (False, False, 0)
    played.until(job_s + 60)
    (granted,) = played.events("lease.granted", "chat")
    assert job_s < granted < job_s + 10
    played.until(4 * job_s)
    assert image.status == 143
    assert played.world.replies == 1 + 1 + _jobs(played, rest.starts), "not one job was lost"
    assert len(played.events("lease.draining")) == 2, "not a switch for each of ten jobs"


def _jobs(played: Played, starts: int) -> int:
    """Return how many jobs the second run of the image engine has ended by now."""
    assert starts == 1
    (_, ready) = played.events("lease.granted", "image")
    return int((played.now - ready - 2.0) // (played.case["engines"]["image"]["job_s"] + 0.5))


def test_hs03_stream_ends_with_its_own_last_event() -> None:
    """A stream of 90 s outlives the next one's asking; the card must show the memory free first."""
    played = Played("HS03")
    one = played.starts("a", reply_s=played.case["engines"]["a"]["stream_s"], lingers_s=6.0)
    played.until(5)
    other = played.starts("b", wait=700.0)
    played.until(92)
    assert (one.served, one.over, other.starts) == (False, False, 0)
    played.until(110)
    assert (one.served, one.status) == (True, 143)
    (freed,), (granted,) = played.events("lease.freed", "a"), played.events("lease.granted", "b")
    assert freed <= granted
    assert granted > 92 + 6, "not before the driver let go of it"
    assert played.used_at_grant["r2"] == 0, "the card itself was empty"
    assert other.starts == 1


def test_hs04_model_that_loads_answers_before_it_is_drained() -> None:
    """Q11: loading 20 s only to be thrown out without one answer serves nobody."""
    played = Played("HS04")
    first = played.starts("m1")
    played.until(1)
    second = played.starts("m2")
    played.until(20)
    assert played.events("lease.draining") == []
    played.until(FAR)
    assert (first.served, first.status, second.served) == (True, 143, True)
    (asked,) = played.events("lease.draining", "m1")
    assert asked >= 22, "20 s to load, 2 s to answer"
    assert played.together == set(), "never are both loading"


def test_hs05_models_that_fit_together_stay_together() -> None:
    """Plan and act take turns without a switch, until one comes that needs the card."""
    played = Played("HS05")
    plan = played.starts("plan", pause_s=20.0)
    played.until(10)
    act = played.starts("act", pause_s=20.0)
    played.until(40)
    assert (played.events("lease.draining"), plan.starts, act.starts) == ([], 1, 1)
    assert [lease.used_mib for lease in played.status().leases] == [8000, 6000]
    big = played.starts("big")
    played.until(100)
    assert (plan.status, act.status, big.served) == (143, 143, True)
    (granted,) = played.events("lease.granted", "big")
    assert max(played.events("lease.freed")) <= granted
    again = played.starts("plan", again=2)
    played.until(FAR)
    assert (big.status, again.served) == (143, True)
    assert frozenset({"plan", "act"}) in played.together
    assert all("big" not in both for both in played.together)


def test_hs06_process_without_a_lease_is_lived_with() -> None:
    """It is shown by name and size, granted beside, never waited out, never killed."""
    played = Played("HS06")
    stowaway = played.stranger("voice-assistant", 600)
    played.until(5)
    (row,) = played.status().stowaways
    assert (row.name, row.used_mib, row.pid) == ("voice-assistant", 600, stowaway.identity.pid)
    ollama = played.starts("ollama", life_s=53.0)
    played.until(8)
    (granted,) = played.events("lease.granted", "ollama")
    assert granted < 5.5
    shown = played.status()
    assert (shown.leases[0].used_mib, shown.card.books_free_mib) == (3000, 49152 - 600 - 3000)
    played.until(70)
    assert (ollama.status, ollama.starts) == (0, 1)
    after = played.status()
    assert (after.leases, after.card.used_mib, after.card.books_free_mib) == ((), 600, 49152 - 600)
    assert stowaway.alive


@pytest.mark.parametrize("seed", range(16))
def test_hs11_two_that_ask_at_once_are_not_granted_the_same_memory(seed: int) -> None:
    """Neither has allocated yet when the other is looked at: what is promised counts as taken."""
    played = Played("HS11", seed)
    both = [played.starts(name, boundary=False, life_s=60.0) for name in ("x", "y")]
    played.until(50)
    assert sorted(client.starts for client in both) == [0, 1]
    (lease,), (waiter,) = played.status().leases, played.status().waiting
    assert (lease.used_mib, waiter.short_mib) == (6500, 6500 - (12288 - 6500))
    played.until(200)
    assert [client.status for client in both] == [0, 0], "the other comes after it"
    assert played.together == set()


def test_hs19_lazy_engine_is_granted_what_it_named_not_what_it_holds() -> None:
    """ComfyUI holds 600 MiB until its first job: the 13,300 it named are its own from the start."""
    played = Played("HS19")
    entry = played.case["engines"]["comfy"]
    voice = played.starts("voice")
    played.until(1)
    comfy = played.starts("comfy", lazy_s=27.0, idle_mib=entry["idle_mib"], reply_s=20.0)
    played.until(10)
    assert (voice.status, comfy.starts) == (143, 1), "both are 15,600 on 15,360: voice gives way"
    (freed,), (granted,) = (
        played.events("lease.freed", "voice"),
        played.events("lease.granted", "comfy"),
    )
    assert freed <= granted
    back = played.starts("voice", again=2, wait=3600.0)
    played.until(28)
    (lease,) = played.status().leases
    assert (lease.used_mib, lease.counts_mib) == (entry["idle_mib"], entry["mib"])
    assert back.starts == 0, "14,760 MiB are free to see, and they are promised"
    played.until(45)
    assert (comfy.loaded, played.used(), comfy.over) == (True, entry["mib"], False)
    assert played.world.collisions == 0
    assert back.starts == 0
