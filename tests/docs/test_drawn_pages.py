"""The pages that are drawn from the code are the code's."""

import pytest

from tests.docs.drawing import PAGES, ROOT


@pytest.mark.parametrize("name", PAGES)
def test_drawn_page_is_the_codes(name: str, request: pytest.FixtureRequest) -> None:
    """A diagram that is redrawn by hand is wrong after the next change."""
    page = ROOT / "docs" / name
    drawn = PAGES[name]()
    if request.config.getoption("--redraw"):
        page.write_text(drawn)
    assert page.read_text() == drawn
