"""berth.toml: read once, checked whole, frozen. What is wrong is told with its line."""

import difflib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec

from berth.errors import BerthError, Code, Exit
from berth.paths import config_path
from berth.units import LONGEST_SPAN, Seconds, parse_duration
from berth.wire import MOST_MIB
from berth.words import plain

Mib = Annotated[int, msgspec.Meta(ge=1, le=MOST_MIB)]


class Duration(float):
    """A span in seconds, as a configuration writes it: 90, "90s", "1m30s"."""

    __slots__ = ()


_Priority = Literal["foreground", "interactive", "batch", "background"]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of berth.toml: unknown keys are errors."""


class DaemonTable(_Table, frozen=True):
    """`[daemon]`: the cards that berthd governs, and its patience."""

    gpu: str | list[str] = "all"
    release_grace: Duration = Duration(30.0)


class SquattersTable(_Table, frozen=True):
    """`[squatters]`: which processes without a lease do not keep a card from being free."""

    allow: list[str] = []
    tolerate_mib: Annotated[int, msgspec.Meta(ge=0)] = 1024


class JuggleTable(_Table, frozen=True):
    """`[juggle]`: when engines that take a card from each other must work in between (Q5)."""

    takes: Annotated[int, msgspec.Meta(ge=1)] = 3
    within: Duration = Duration(600.0)
    factor: Annotated[float, msgspec.Meta(ge=0.0, le=100.0)] = 4.0


class EngineTable(_Table, frozen=True):
    """`[[engine]]`: defaults for `berth run --as NAME`, and what it starts."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    start: str | list[str] | None = None
    gpu: str | list[str] | None = None
    needs_mib: Mib | list[Mib] | None = None
    priority: _Priority | None = None
    drain_slots: str | None = None
    unload_url: str | None = None
    drain_wait: Duration | None = None
    grace: Duration | None = None
    min_turn: Duration | None = None
    start_limit: Duration | None = None
    wait: Duration | None = None
    pinned: bool = False
    fail_closed: bool = False
    env: dict[str, str] = {}
    cwd: str | None = None


class Config(_Table, frozen=True):
    """All of berth.toml."""

    daemon: DaemonTable = DaemonTable()
    squatters: SquattersTable = SquattersTable()
    juggle: JuggleTable = JuggleTable()
    engine: list[EngineTable] = []

    def engine_named(self, name: str) -> EngineTable | None:
        """Return the engine of that name, None when there is none."""
        return next((engine for engine in self.engine if engine.name == name), None)


_PLACE: Final = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<key>[^`]+)`")
_HEADER: Final = re.compile(r"\s*(?P<open>\[\[?)\s*(?P<name>[A-Za-z0-9_.\-]+)\s*\]")


def configured(environ: Mapping[str, str]) -> Config:
    """Read the berth.toml that counts here: the one that BERTH_CONFIG names, else the usual one.

    Raises:
        BerthError: as `load_config`.
    """
    return load_config(config_path(environ), named=bool(environ.get("BERTH_CONFIG")))


def load_config(path: Path, *, named: bool = False) -> Config:
    """Read berth.toml; a file that is not there is an empty one, unless somebody named it.

    Raises:
        BerthError: the file cannot be read, or is wrong; the sentence says where. It is `named`,
            and not there.
    """
    try:
        text = path.read_text()
    except FileNotFoundError as error:
        if named:
            hint = "write it, or unset BERTH_CONFIG: then the usual place counts"
            raise _bad(f"BERTH_CONFIG names {path}, and there is no such file", hint) from error
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise _bad(f"{path} cannot be read: {error}") from error
    return parse_config(text, str(path))


def parse_config(text: str, name: str = "berth.toml") -> Config:
    """Read the text of a berth.toml.

    Raises:
        BerthError: it is wrong; the sentence says where and, for a key, what is near.
    """
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for numbers of thousands of digits
        raise _bad(f"{name}: {error}") from error
    _refuse_nul(raw, [], text, name)
    try:
        config = msgspec.convert(raw, Config, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise _explain(str(error), text, name) from error
    names = [engine.name for engine in config.engine]
    for engine in names:
        if names.count(engine) > 1:
            raise _bad(f'{name}: two [[engine]] entries are called "{engine}"')
    return config


def _refuse_nul(value: object, path: list[str | int], text: str, name: str) -> None:
    """Refuse NUL characters: no command, path, variable or address can have one."""
    if isinstance(value, str) and "\0" in value:
        where = plain(".".join(part for part in path if isinstance(part, str)))
        raise _bad(f"{name} line {_line_of(path, text)}: {where}: there is a NUL character in it")
    if isinstance(value, dict):
        for key, inner in value.items():
            _refuse_nul(key, [*path, key], text, name)
            _refuse_nul(inner, [*path, key], text, name)
    if isinstance(value, list):
        for index, inner in enumerate(value):
            _refuse_nul(inner, [*path, index], text, name)


def _decode(kind: type, value: object) -> object:
    if kind is not Duration:
        raise NotImplementedError(kind)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        # Only a ValueError becomes msgspec's own error, with the place in the file.
        raise ValueError('a duration is a number or a text such as "1m30s"')  # noqa: TRY004
    span = parse_duration(value) if isinstance(value, str) else value
    if not 0 <= span <= LONGEST_SPAN:
        raise ValueError("a duration is from 0 s to ten years")
    return Duration(span)


def _bad(message: str, hint: str = "") -> BerthError:
    return BerthError(Code.BAD_CONFIG, message, hint=hint, exit_status=Exit.CONFIG)


def _explain(message: str, text: str, name: str) -> BerthError:
    """Say which line is wrong, in words of the file and not of the checker."""
    place = _PLACE.search(message)
    path = _split(place["path"]) if place is not None else []
    said = message[: place.start()] if place is not None else message
    unknown = _UNKNOWN.search(said)
    if unknown is not None:
        key = unknown["key"]
        line = _line_of([*path, key], text)
        known = _keys_of(path)
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known)}"
        return _bad(f'{name} line {line}: {_table_name(path)} has no key "{key}"', hint)
    line = _line_of(path, text)
    where = ".".join(part for part in path if isinstance(part, str))
    return _bad(f"{name} line {line}: {where}: {_in_words(said)}")


_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_WRONG_KIND: Final = re.compile(r"Expected `(?P<kinds>[^`]+)`, got `(?P<got>[^`]+)`")
_TOO_LITTLE: Final = re.compile(r"Expected `(?:int|float)` (?P<how>[<>])= (?P<limit>[\d.]+)")
_MISSING: Final = re.compile(r"Object missing required field `(?P<key>[^`]+)`")


def _in_words(said: str) -> str:
    """Return what the checker says of a value in words of the file."""
    if (found := _WRONG_KIND.fullmatch(said)) is not None:
        kinds = [kind for kind in found["kinds"].split(" | ") if kind != "null"]
        wanted = " or ".join(_KINDS.get(kind, kind) for kind in kinds)
        return f"it takes {wanted}, and this is {_KINDS.get(found['got'], found['got'])}"
    if (found := _TOO_LITTLE.fullmatch(said)) is not None:
        return f"it takes {found['limit']} or {'more' if found['how'] == '>' else 'less'}"
    if (found := _MISSING.fullmatch(said)) is not None:
        return f'it needs a key "{found["key"]}"'
    if (found := re.fullmatch(r"Invalid enum value (?P<value>.+)", said)) is not None:
        return f"{found['value']} is none of {', '.join(get_args(_Priority))}"
    if said == "Expected `str` of length >= 1":
        return "it takes a text that is not empty"
    return said


def _split(path: str) -> list[str | int]:
    """Return `engine[1].gpu` as its parts."""
    parts: list[str | int] = []
    for word, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        parts.append(word or int(index))
    return parts


def _table_name(path: list[str | int]) -> str:
    if not path:
        return "the file"
    return f"[[{path[0]}]]" if len(path) > 1 else f"[{path[0]}]"


def _keys_of(path: list[str | int]) -> list[str]:
    tables: dict[str, type[msgspec.Struct]] = {
        "daemon": DaemonTable,
        "squatters": SquattersTable,
        "juggle": JuggleTable,
        "engine": EngineTable,
    }
    table: Any = tables.get(str(path[0]), Config) if path else Config
    return list(table.__struct_fields__)


def _line_of(path: list[str | int], text: str) -> int:
    """Return the line on which a key stands (the table's own when the key is not found)."""
    table = str(path[0]) if path else ""
    index = path[1] if len(path) > 1 and isinstance(path[1], int) else 0
    keys = [part for part in path if isinstance(part, str)]
    key, dotted = str(keys[-1]), ".".join(keys) if keys else ""
    seen, inside, best = -1, len(path) == 1, 1
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header is not None:
            same = header["name"] == table
            seen += same
            inside = same and (header["open"] == "[" or seen == index)
            best = number if inside else best
            continue
        wanted = key if inside else dotted
        if (inside or seen < 0) and re.match(rf"\s*[\"']?{re.escape(wanted)}[\"']?\s*=", line):
            return number
    return best


def seconds(duration: Duration | None, otherwise: float) -> Seconds:
    """Return a configured duration, or what holds when there is none."""
    return Seconds(otherwise if duration is None else float(duration))
