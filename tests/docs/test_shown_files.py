"""A page that shows a file shows that file: `pytest tests/docs --redraw` writes it anew."""

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, fill_from_file, name_of, pages

LANGUAGES = {".py": "python", ".mjs": "js", ".json": "json", ".toml": "toml", ".txt": "text"}
SHOWING = [page for page in pages() if "<!-- file: " in page.read_text()]


@pytest.mark.parametrize("page", SHOWING, ids=name_of)
def test_page_shows_its_files_as_they_are(page: Path, request: pytest.FixtureRequest) -> None:
    """Who copies a client from the page gets the one that is tested."""
    if request.config.getoption("--redraw"):
        fill_from_file(page, LANGUAGES)
    for block in blocks(page):
        if block.mark.startswith("file: "):
            shown = ROOT / block.mark.removeprefix("file: ")
            assert block.text == shown.read_text(), f"{name_of(page)} line {block.line}"


def test_raw_clients_are_shown() -> None:
    """The page for other languages is nothing without them."""
    shown = {block.mark for block in blocks(ROOT / "docs" / "raw-clients.md")}
    assert {"file: examples/raw/client.py", "file: examples/raw/client.mjs"} <= shown
