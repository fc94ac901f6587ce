"""Pages that are drawn from the code: `pytest tests/docs --redraw` writes them anew."""

import ast
from pathlib import Path

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


PAGES = {"lease-states.md": lease_states, "messages.md": messages}
