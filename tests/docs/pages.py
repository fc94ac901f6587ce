"""The pages people read, and the blocks in them: commands, files, marks for the tests.

A mark is a comment before a block, which a reader of the page does not see:

    <!-- not run: it needs a GPU -->     commands that the tests cannot run, and why
    <!-- stays -->                       commands that run until they are stopped
    <!-- file: examples/raw/client.py -->    the block is that file, word for word
"""

import re
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n\n?)?^```(?P<language>[a-z]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One fenced block: its language, its text, the mark before it, the line it begins on."""

    language: str
    text: str
    mark: str
    line: int


def pages() -> list[Path]:
    """Return every page that people read."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(
            language=found["language"],
            text=found["text"],
            mark=found["mark"] or "",
            line=text.count("\n", 0, found.start("language")) + 1,
        )
        for found in _BLOCK.finditer(text)
    ]


def fill_from_file(page: Path, language_of: dict[str, str]) -> None:
    """Write the files that a page shows into it anew."""

    def filled(found: re.Match[str]) -> str:
        mark = found["mark"] or ""
        if not mark.startswith("file: "):
            return found[0]
        path = ROOT / mark.removeprefix("file: ")
        language = language_of[path.suffix]
        return f"<!-- {mark} -->\n```{language}\n{path.read_text()}```"

    page.write_text(_BLOCK.sub(filled, page.read_text()))
