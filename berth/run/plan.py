"""From flags and berth.toml to what a run needs (R2, R3)."""

import os
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from berth.client import berthd_listens
from berth.config import Config, EngineTable
from berth.errors import no_utf8, usage_error
from berth.ids import Key
from berth.lease import Priority
from berth.marks import mark_of
from berth.paths import berthd_ran_this_boot, check_socket_dir
from berth.run.state import RunOptions
from berth.run.wrapper import RunPlan
from berth.units import Seconds, parse_count, parse_duration, show_gib, show_line
from berth.wire import LONGEST_NAME
from berth.words import plain


class RunFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `berth run` as they were typed; None where they were not."""

    as_: str | None = None
    group: str | None = None
    gpu: str | None = None
    needs_mib: str | None = None
    priority: str | None = None
    wait: str | None = None
    min_turn: str | None = None
    pinned: bool = False
    drain_slots: str | None = None
    unload: str | None = None
    grace: str | None = None
    drain_wait: str | None = None
    start_limit: str | None = None
    fail_closed: bool = False
    key_file: Path | None = None


_NO_ENGINE = EngineTable(name="none")


def plan_run(
    command: Sequence[str],
    flags: RunFlags,
    config: Config,
    socket: Path,
    environ: Mapping[str, str],
) -> RunPlan:
    """Return what a run needs. A flag comes before NAME's `[[engine]]` entry, that before defaults.

    Raises:
        BerthError: there is nothing to run, or a flag is nonsense.
    """
    check_socket_dir(socket)
    entry = None if flags.as_ is None else config.engine_named(flags.as_)
    if not command:
        command = _start_of(flags, entry)
    if not command[0]:
        raise usage_error("the command is empty", "is a variable in it unset?  berth run -- CMD")
    engine = entry or _NO_ENGINE
    key = Key(secrets.token_hex(16))
    terms = _terms(flags, engine, command, key)
    _refuse_no_utf8(terms)
    slots = _address("--drain-slots", flags.drain_slots, engine, "drain_slots", engine.drain_slots)
    unload = _address("--unload", flags.unload, engine, "unload_url", engine.unload_url)
    options = RunOptions(
        name=terms["name"],
        wait=Seconds(terms["wait_s"]),
        drain_wait=Seconds(terms["drain_wait_s"]),
        grace=Seconds(terms["grace_s"]),
        boundary=slots is not None,
        unload=unload is not None,
        fail_closed=terms["fail_closed"],
        names_cards=terms["cards"] is not None,
        mark=mark_of(key),
        environment_names=frozenset({*environ, *engine.env}),
        berthd_seen_this_boot=berthd_listens(socket) or berthd_ran_this_boot(socket),
        asks=_asks(terms["needs_mib"]),
        priority=terms["priority"] or ("interactive" if slots is not None else "batch"),
        on_terminal=sys.stderr.isatty(),
    )
    return RunPlan(
        command=command,
        environment=engine.env,
        directory=engine.cwd,
        options=options,
        terms=terms,
        socket=socket,
        slots_url=slots,
        unload_url=unload,
        engine_key=None if flags.key_file is None else _read_key(flags.key_file),
    )


def _asks(needs: int | list[int] | None) -> str:
    """Return what is asked for, in words."""
    if needs is None:
        return "the whole card"
    sizes = [needs] if isinstance(needs, int) else needs
    return f"{', '.join(show_gib(size) for size in sizes)} GiB"


def _start_of(flags: RunFlags, entry: EngineTable | None) -> Sequence[str]:
    """Return what NAME's entry starts (R3)."""
    if flags.as_ is None:
        raise usage_error("nothing to run", "write it behind --, as in:  berth run -- CMD")
    if entry is None:
        raise usage_error(
            f'nothing to run, and berth.toml has no [[engine]] "{flags.as_}" that would start one',
            f"write it behind --, as in:  berth run --as {flags.as_} -- CMD",
        )
    if entry.start is None:
        raise usage_error(f'nothing to run: [[engine]] "{entry.name}" in berth.toml has no start')
    try:
        words = shlex.split(entry.start) if isinstance(entry.start, str) else entry.start
    except ValueError as error:
        raise usage_error(f'[[engine]] "{entry.name}" in berth.toml: start: {error}') from error
    if not words or not words[0]:
        raise usage_error(f'[[engine]] "{entry.name}" in berth.toml: start is empty')
    return words


def _terms(
    flags: RunFlags, engine: EngineTable, command: Sequence[str], key: Key
) -> dict[str, Any]:
    """Return the fields of `lease.request` and `attach`."""
    boundary = flags.drain_slots is not None or engine.drain_slots is not None
    return {
        "name": flags.as_ or _name_of(command[0]),
        "key": key,
        "needs_mib": _needs(flags.needs_mib) if flags.needs_mib else engine.needs_mib,
        "cards": _cards(_entry(engine, "gpu"), engine.gpu)
        if flags.gpu is None
        else _cards("--gpu", flags.gpu),
        "priority": _priority(flags.priority) or engine.priority,
        "wait_s": _span("--wait", flags.wait, engine.wait, 120.0),
        "min_turn_s": _span("--min-turn", flags.min_turn, engine.min_turn, 0.0),
        "drain_wait_s": _span("--drain-wait", flags.drain_wait, engine.drain_wait, 300.0),
        "grace_s": _span("--grace", flags.grace, engine.grace, 10.0),
        "start_limit_s": _span("--start-limit", flags.start_limit, engine.start_limit, 900.0),
        "pinned": flags.pinned or engine.pinned,
        "fail_closed": flags.fail_closed or engine.fail_closed,
        "group": flags.group,
        "boundary": boundary,
        "exclusive": flags.as_ is not None,
        "numbered": flags.as_ is None,
        "wrapped": True,
    }


def _name_of(program: str) -> str:
    """Return what a command without a name is called: its file's name, as it can be shown."""
    word = plain(os.path.basename(program))  # noqa: PTH119 -- a word
    return word[:LONGEST_NAME] or "command"


def _refuse_no_utf8(terms: Mapping[str, Any]) -> None:
    """Refuse what berthd cannot be told, before anything is started."""
    try:
        msgspec.json.encode(terms)
    except UnicodeEncodeError as error:
        raise no_utf8(error.object) from error


def _priority(typed: str | None) -> str | None:
    words = [priority.word for priority in Priority if priority is not Priority.HOLD]
    if typed is not None and typed not in words:
        raise usage_error(f"--priority: {typed!r} is none of {', '.join(words)}")
    return typed


def _span(flag: str, typed: str | None, configured: float | None, otherwise: float) -> float:
    if typed is None:
        return otherwise if configured is None else float(configured)
    try:
        return parse_duration(typed)
    except ValueError as error:
        raise usage_error(f"{flag}: {error}") from error


def _needs(text: str) -> int | list[int]:
    sizes = [parse_count(word) or 0 for word in text.split(",")]
    if not all(sizes):
        shown = show_line(text, _LONGEST_SHOWN)
        raise usage_error(f"--needs-mib: {shown!r} is no number of MiB; write 14000, or 15000,9000")
    return sizes[0] if len(sizes) == 1 else sizes


_LONGEST_SHOWN: Final = 60


def _entry(engine: EngineTable, key: str) -> str:
    """Return where in berth.toml something was read, as a person finds it."""
    return f'[[engine]] "{engine.name}" in berth.toml: {key}'


def _address(
    flag: str, typed: str | None, engine: EngineTable, key: str, configured: str | None
) -> str | None:
    """Return the URL that a flag or the entry names: one that can be called.

    One that cannot would be found out by the first drain, in the middle of a reply.
    """
    url = configured if typed is None else typed
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        named = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
        callable_ = named and url.isascii()
    except ValueError:
        callable_ = False
    if not callable_:
        where = _entry(engine, key) if typed is None else flag
        raise usage_error(f"{where}: '{plain(url)}' is no URL; write it like http://127.0.0.1:8080")
    return url


def _cards(where: str, text: str | list[str] | None) -> list[str] | None:
    """Return the cards that a run names, None for the node's choice."""
    if text is None:
        return None
    words = [w.strip() for w in (text.split(",") if isinstance(text, str) else text)]
    if not all(words):
        raise usage_error(f"{where}: {text!r} leaves a card unnamed; write gpu1, or gpu0,gpu1")
    if len(words) > 1 and "any" in words:
        raise usage_error(f"{where}: any stands alone; name cards, or leave the choice to berthd")
    return words


def _read_key(path: Path) -> str:
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise usage_error(f"--key-file: {plain(str(path))}: {error.strerror}") from error
    if not key.isascii() or not key.decode().isprintable():
        hint = "write the key alone into it, as one line of ASCII"
        raise usage_error(f"--key-file: {plain(str(path))} holds something that is no key", hint)
    return key.decode()
