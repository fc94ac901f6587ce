"""Statuses to be shown: the situations of a workstation, as berthd's JSON tells them."""

from typing import Any

GIB = 1024
Row = dict[str, Any]


def mib(gib: float) -> int:
    return round(gib * GIB)


def card(name: str = "gpu0", index: int = 0, **changes: Any) -> Row:
    """Return a card of 24 GiB, all of it free."""
    row: Row = {
        "card": name,
        "index": index,
        "uuid": f"GPU-{index}",
        "pci": f"0000:0{index + 1}:00.0",
        "product": "NVIDIA GeForce RTX 4090",
        "vendor": "nvidia",
        "total_mib": mib(24),
        "used_mib": mib(0.4),
        "free_mib": mib(23.6),
        "baseline_mib": mib(0.4),
        "unexplained_mib": 0,
        "capacity_mib": mib(23.6),
        "state": "ok",
        "why": None,
        "reading_age_s": 0.4,
        "utilisation_pct": 3.0,
        "temperature_c": 41.0,
        "power_w": 22.4,
        "power_limit_w": 450.0,
        "fan_pct": 30.0,
        "clamped_mib": 0,
        "books_free_mib": mib(23.6),
        "driver_free_mib": mib(23.6),
        "handoffs": 0,
        "handoff_median_s": None,
    }
    return row | changes


def free(gib: float) -> Row:
    """Return the figures of a card that has so much left."""
    left = mib(gib)
    return {"free_mib": left, "books_free_mib": left, "driver_free_mib": left}


def lease(number: int, name: str, gib: float | None, **changes: Any) -> Row:
    """Return a lease that runs and uses what it asked for."""
    size = None if gib is None else mib(gib)
    row: Row = {
        "lease": f"L{number}",
        "card": "gpu0",
        "cards": [changes.get("card", "gpu0")],
        "name": name,
        "group": None,
        "priority": "interactive",
        "state": "running",
        "ask_mib": size,
        "used_mib": size,
        "lent_mib": 0,
        "since_s": 40.0,
        "turn_left_s": 0.0,
        "pinned": False,
        "pids": [4000 + number],
        "containers": [],
        "model": None,
        "note": None,
        "way_out": None,
        "counts_mib": size,
        "in_flight": None,
        "for": None,
        "left_s": None,
        "boundary": True,
    }
    return row | changes


def blocker(who: str, how: str, **changes: Any) -> Row:
    row: Row = {
        "who": who,
        "how": how,
        "left_s": None,
        "ref": "",
        "lease": None,
        "request": None,
        "stowaway": None,
        "mib": None,
        "in_flight": None,
    }
    row |= changes
    return row | {"ref": row["lease"] or row["request"] or row["ref"]}


def waiter(number: int, name: str, gib: float | None, why: str, **changes: Any) -> Row:
    row: Row = {
        "request": f"r{number}",
        "card": "gpu0",
        "cards": [changes.get("card", "gpu0")],
        "name": name,
        "priority": "interactive",
        "ask_mib": None if gib is None else mib(gib),
        "position": 1,
        "waited_s": 9.0,
        "wait_left_s": 111.0,
        "code": "draining",
        "why": why,
        "blockers": [],
        "eta_s": None,
        "eta_of": None,
        "short_mib": None,
        "then_mib": None,
    }
    return row | changes


def stowaway(name: str, gib: float | None, **changes: Any) -> Row:
    row: Row = {
        "card": "gpu0",
        "pid": 4121,
        "name": name,
        "container": None,
        "used_mib": None if gib is None else mib(gib),
        "squatter": False,
    }
    return row | changes


def status(*cards: Row, uptime: float = 187200.0, **parts: Any) -> Row:
    whole: Row = {
        "v": 1,
        "node": {"name": "workbench", "version": "0.1.0", "pid": 812, "uptime_s": uptime},
        "cards": list(cards),
        "leases": [],
        "waiting": [],
        "stowaways": [],
        "claims": [],
    }
    return whole | parts


# --- the situations -------------------------------------------------------------------------------


def idle() -> Row:
    return status(card())


def first_day() -> Row:
    return status(
        card(temperature_c=41.0, power_w=24.0, used_mib=mib(0.8), **free(23.2)),
        uptime=12.0,
        stowaways=[stowaway("chrome", 0.4)],
    )


def a6000(**changes: Any) -> Row:
    figures: Row = {
        "product": "NVIDIA RTX A6000",
        "total_mib": mib(48),
        "baseline_mib": mib(0.7),
        "capacity_mib": mib(47.3),
        "temperature_c": 48.0,
        "power_w": 92.0,
    }
    return card("gpu1", 1) | figures | changes


def zoo() -> Row:
    """Return two cards with everything that one waits and worries about."""
    hot: Row = {"temperature_c": 71.0, "power_w": 318.0, "handoffs": 41, "handoff_median_s": 2.1}
    return status(
        card(**(hot | free(3.2))),
        a6000(**free(17.7)),
        leases=[
            lease(
                31,
                "qwen3-27b",
                14.0,
                state="draining",
                since_s=2460.0,
                model="Qwen3.6-27B Q4",
                note="asked to finish for sd-batch 6s ago; 1 reply in flight",
                in_flight={"n": 1, "what": "reply"},
                **{"for": "r9"},
            ),
            lease(33, "comfyui", 6.0, since_s=192.0, turn_left_s=108.0, model="flux-dev"),
            lease(
                29,
                "train",
                None,
                card="gpu1",
                state="stuck",
                priority="batch",
                used_mib=mib(20.5),
                counts_mib=mib(20.5),
                since_s=7440.0,
                note="said it released 1m12s ago, but gpu1 still shows 20.5 GiB",
                way_out="berth reclaim train",
            ),
            lease(
                30,
                "embed",
                2.0,
                card="gpu1",
                state="parked",
                used_mib=mib(0.3),
                counts_mib=mib(0.3),
                since_s=1320.0,
                model="bge-m3",
            ),
        ],
        waiting=[
            waiter(
                9,
                "sd-batch",
                16.0,
                "qwen3-27b is finishing 1 reply; then 17.2 GiB is free and you fit",
                priority="foreground",
                waited_s=74.0,
                wait_left_s=646.0,
                blockers=[blocker("qwen3-27b", "draining", lease="L31", in_flight=1)],
                eta_s=20.0,
                eta_of="handoff",
                short_mib=mib(12.8),
                then_mib=mib(17.2),
            ),
            waiter(
                10,
                "whisper",
                5.0,
                "sd-batch comes first; comfyui keeps its turn for 1m48s",
                priority="batch",
                position=2,
                waited_s=12.0,
                wait_left_s=108.0,
                blockers=[
                    blocker("sd-batch", "first_in_line", request="r9"),
                    blocker("comfyui", "in_turn", lease="L33", left_s=108.0),
                ],
                eta_s=110.0,
                eta_of="turn",
            ),
            waiter(
                11,
                "gemma-70b",
                36.0,
                "train holds 20.5 GiB that it said it gave back; the card decides",
                card="gpu1",
                waited_s=41.0,
                wait_left_s=79.0,
                blockers=[blocker("train", "stuck", lease="L29")],
            ),
            waiter(
                12,
                "reader",
                3.0,
                "3.0 GiB is free now, but then gemma-70b (36.0) would not fit",
                card="gpu1",
                priority="batch",
                position=2,
                waited_s=9.0,
                wait_left_s=111.0,
                blockers=[blocker("gemma-70b", "first_in_line", request="r11")],
            ),
        ],
        stowaways=[
            stowaway("chrome", 0.4),
            stowaway(
                "ollama",
                8.6,
                card="gpu1",
                pid=900,
                container="open-webui-ollama-1 (docker)",
                squatter=True,
            ),
            stowaway("python", None, card="gpu1", pid=901, container="lxc:101 (ollama)"),
        ],
        park={
            "budget_mib": mib(16),
            "reserved_mib": mib(1.8),
            "available_mib": mib(21.4),
            "pressure_pct": 0.0,
        },
    )


def claimed() -> Row:
    """Return a node that a game has."""
    why = "a game holds every card; Berth cannot tell which one it will use"
    return status(
        card(temperature_c=66.0, power_w=240.0, **free(14.0)),
        a6000(temperature_c=39.0, power_w=28.0, **free(47.0)),
        claims=[
            {
                "kind": "game",
                "name": "Baldur's Gate 3",
                "pid": 30112,
                "cards": ["gpu0", "gpu1"],
                "detail": "steam 1086940",
                "for_s": 242.0,
            }
        ],
        leases=[
            lease(
                3,
                "embed",
                2.0,
                card="gpu1",
                state="parked",
                used_mib=mib(0.3),
                counts_mib=mib(0.3),
                since_s=5160.0,
            )
        ],
        waiting=[
            waiter(
                4,
                "qwen3-27b",
                14.0,
                why,
                waited_s=238.0,
                wait_left_s=482.0,
                blockers=[blocker("Baldur's Gate 3", "claimed")],
            ),
            waiter(
                5,
                "train",
                None,
                why,
                card="gpu1",
                priority="batch",
                waited_s=231.0,
                wait_left_s=489.0,
                blockers=[blocker("Baldur's Gate 3", "claimed")],
            ),
        ],
        stowaways=[stowaway("bg3", 8.4, pid=30112), stowaway("chrome", 0.8)],
    )


def lending() -> Row:
    """Return a lend, a lease over two cards, and a card without a reading."""
    over_two = {"cards": ["gpu0", "gpu1"], "since_s": 4320.0}
    blind = "gpu1 cannot be read: last seen with 10.0 GiB; it grants nothing"
    return status(
        card(temperature_c=66.0, power_w=240.0, **free(1.6)),
        a6000(
            state="unmeasured",
            why="driver hung",
            reading_age_s=14.0,
            free_mib=None,
            books_free_mib=None,
            driver_free_mib=None,
        ),
        leases=[
            lease(
                1,
                "chat",
                12.0,
                state="lending",
                used_mib=mib(9.0),
                counts_mib=mib(9.0),
                since_s=3060.0,
                model="Qwen3.6-27B Q4",
                note="lends 3.0 GiB to whisper and keeps serving; asked back after it",
            ),
            lease(2, "whisper", 3.0),
            lease(3, "qwen-32b", 10.0, **over_two),
            lease(3, "qwen-32b", 10.0, card="gpu1", note=blind, **over_two),
        ],
    )


def held() -> Row:
    """Return a card that a person holds, with an engine that waits for it."""
    return status(
        card(**free(0.0)),
        leases=[
            lease(
                7,
                "hold",
                None,
                priority="hold",
                used_mib=0,
                counts_mib=mib(23.6),
                since_s=600.0,
                left_s=3000.0,
                pids=[],
                boundary=False,
                note="a game; held by a person for 50m more",
            )
        ],
        waiting=[
            waiter(
                8,
                "chat",
                14.0,
                "a person keeps the card for 50m (berth release ends it)",
                blockers=[blocker("hold", "held", lease="L7", left_s=3000.0)],
                eta_s=3000.0,
                eta_of="hold",
            )
        ],
    )


def pair() -> Row:
    """Return a request for two cards that waits on one of them."""
    both = {"cards": ["gpu0", "gpu1"], "priority": "batch"}
    busy = blocker("train", "busy", lease="L4")
    return status(
        card(),
        a6000(**free(7.3)),
        leases=[lease(4, "train", 40.0, card="gpu1", priority="batch", since_s=7440.0)],
        waiting=[
            waiter(9, "pair", 10.0, "gpu1 has no room for it yet", code="elsewhere", **both),
            waiter(
                9,
                "pair",
                10.0,
                "train is a job and runs to its end",
                card="gpu1",
                blockers=[busy],
                short_mib=mib(2.7),
                **both,
            ),
        ],
    )


def contested() -> Row:
    """Return a card on which something loaded beside the grants."""
    return status(
        card(used_mib=mib(24), free_mib=0, books_free_mib=mib(-2.5), driver_free_mib=0),
        leases=[lease(1, "chat", 14.0)],
        stowaways=[stowaway("blender", 12.1, squatter=True)],
    )


def hostile() -> Row:
    """Return names that a screen must survive: long, wide, with escapes and newlines."""
    evil = "\x1b[31mred\x1b[0m\nroot#  rm\r\x07"
    wide = "日本語のとても長いエンジンの名前です" * 3
    flipped = "chat\u202egnp.exe"
    return status(
        card("gpu0", 0, product="\x1b[2JRTX", **free(2.0)),
        card("gpu1", 1, state="lost", why="fell off\nthe bus", free_mib=None, books_free_mib=None),
        leases=[
            lease(1, "x" * 200, 4.0, model="y" * 200, note="z" * 300),
            lease(2, evil, 5.0, model=evil, note=evil, state="stuck", way_out="berth reclaim L2"),
            lease(3, wide, 6.0, card="gpu1"),
            lease(4, flipped, 1.0, state="dreaming"),
        ],
        waiting=[
            waiter(5, evil, 3.0, f"{evil} comes first", blockers=[blocker(evil, "first_in_line")]),
            waiter(6, wide, None, f"{wide} was asked to finish", position=2),
        ],
        stowaways=[stowaway(evil, 1.0, container=evil), stowaway(wide, None, squatter=True)],
    )


def crowd(number: int = 300) -> Row:
    """Return far more leases and waiters than anybody has letters for."""
    return status(
        card(**free(0.0)),
        leases=[lease(n, f"engine-{n}", 0.1) for n in range(1, number + 1)],
        waiting=[
            waiter(n, f"late-{n}", 1.0, "engine-1 was asked to finish", position=n)
            for n in range(1, number + 1)
        ],
    )


def no_cards() -> Row:
    return status()


SITUATIONS = {
    "idle": idle,
    "first-day": first_day,
    "zoo": zoo,
    "claimed": claimed,
    "lending": lending,
    "held": held,
    "pair": pair,
    "contested": contested,
    "hostile": hostile,
    "no-cards": no_cards,
}
