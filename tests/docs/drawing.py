"""Pages that are drawn from the code: `pytest tests/docs --redraw` writes them anew."""

import ast
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from berth import views, wire
from berth.actors.topology import MAY_TELL
from berth.lease import EDGES

ROOT = Path(__file__).parents[2]
BERTH = ROOT / "berth"

_DRAWN = "<!-- drawn from the code: pytest tests/docs --redraw -->\n\n"


def lease_states() -> str:
    """Return docs/lease-states.md: the states of a lease and the changes between them."""
    lines = ["# What a lease can be\n", _DRAWN, "```mermaid", "stateDiagram-v2"]
    lines.append("    [*] --> Granted: granted")
    lines += [f"    {e.before.__name__} --> {e.after.__name__}: {e.cause}" for e in EDGES]
    lines += ["    Releasing --> [*]: a later reading shows it free"]
    lines += ["    Stuck --> [*]: a later reading shows it free", "```\n"]
    lines += ["| state | in status | what it is |", "|---|---|---|"]
    states = dict.fromkeys([edge.before for edge in EDGES] + [edge.after for edge in EDGES])
    lines += [
        f"| {s.__name__} | `{_word(s)}` | {(s.__doc__ or '').split(chr(10))[0]} |" for s in states
    ]
    return "\n".join(lines) + "\n"


def _word(state: type) -> str:
    words = {
        "Granted": "starting",
        "Keeping": "draining",
    }
    return words.get(state.__name__, state.__name__.lower())


def messages() -> str:
    """Return docs/messages.md: what every actor hears and says."""
    lines = ["# What the actors tell each other\n", _DRAWN]
    lines.append("| actor | may tell |\n|---|---|")
    lines += [f"| {role} | {', '.join(sorted(told))} |" for role, told in MAY_TELL.items()]
    for path in _message_files():
        lines.append(f"\n## {path.relative_to(BERTH).as_posix()}\n")
        lines += [f"- **{name}**: {doc}" for name, doc in _classes(path)]
    return "\n".join(lines) + "\n"


def _message_files() -> list[Path]:
    actors = sorted((BERTH / "actors").glob("*/messages.py"))
    return [*actors, BERTH / "actors/node/inbox.py", BERTH / "probes/messages.py"]


def _classes(path: Path) -> list[tuple[str, str]]:
    found = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            doc = " ".join((ast.get_docstring(node) or "").split())
            found.append((node.name, doc))
    return found


def shapes() -> str:
    """Return docs/shapes.md: every field that crosses the socket, with its type and default."""
    lines = ["# Shapes of the protocol\n", _DRAWN]
    lines.append(
        "What the [protocol](protocol.md) is made of. A field with a default may be left away."
    )
    lines.append("\n# Ops")
    for op in get_args(wire.AnyOp):
        lines += _shape(op, f"`{op.__struct_config__.tag}`")
    lines.append("\n# What berthd says")
    for said in (wire.Answer, wire.ErrorBody, wire.OrderMessage, wire.EventMessage):
        lines += _shape(said, said.__name__)
    lines.append("\n# Status")
    for view in _views():
        lines += _shape(view, view.__name__)
    return "\n".join(lines) + "\n"


def _views() -> Iterator[type[msgspec.Struct]]:
    for found in vars(views).values():
        if isinstance(found, type) and issubclass(found, msgspec.Struct):
            yield found


def _shape(struct: type[msgspec.Struct], title: str) -> list[str]:
    """Return one struct as a table."""
    doc = " ".join((struct.__doc__ or "").split())
    lines = [f"\n## {title}\n", f"{doc}\n", "| field | type | default |", "|---|---|---|"]
    hints = get_type_hints(struct, include_extras=True)
    rows = [
        f"| `{field.encode_name}` | {_kind(hints[field.name])} | {_default(field)} |"
        for field in msgspec.structs.fields(struct)
    ]
    return lines + rows


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default).decode()}`"
    if field.default_factory is not msgspec.NODEFAULT:
        return f"`{msgspec.json.encode(field.default_factory()).decode()}`"
    return ""


_WORDS = {str: "text", int: "integer", float: "number", bool: "true, false", type(None): "null"}


def _kind(hint: Any) -> str:
    """Return a type as JSON knows it."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return "any"
    if hint in _WORDS:
        return _WORDS[hint]
    if hasattr(hint, "__metadata__"):
        return _kind(hint.__origin__)
    if origin is types.UnionType:
        return " or ".join(_kind(one) for one in inside)
    if origin in {list, tuple}:
        return f"list of {_kind(inside[0])}"
    if origin is dict:
        return "object"
    return str(hint.__name__)


PAGES = {"lease-states.md": lease_states, "messages.md": messages, "shapes.md": shapes}
