"""Every story in this folder is told as it stands (see telling.py)."""

from pathlib import Path

import pytest

from tests.stories.telling import retell

STORIES = sorted(Path(__file__).parent.glob("*.story"))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_story_is_told_as_it_stands(story: Path, request: pytest.FixtureRequest) -> None:
    """What a card says to each event is what a person has read and agreed to."""
    text = story.read_text()
    told = retell(text)
    if request.config.getoption("--retell"):
        story.write_text(told)
    assert told == story.read_text()


def test_there_are_stories() -> None:
    """A moved folder does not pass for a green run."""
    assert len(STORIES) >= 10
