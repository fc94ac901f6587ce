"""Every case of the file is played."""

import json
import re

import pytest

from tests.cases import test_processes, test_worlds
from tests.cases.played import FILE


def test_every_case_has_a_test() -> None:
    """A case that is only written down holds nobody to anything."""
    named = " ".join([*vars(test_worlds), *vars(test_processes)])
    played = {found.upper() for found in re.findall(r"\btest_(hs\d\d)_", named)}
    assert played == {case["id"] for case in json.loads(FILE.read_text())}


@pytest.mark.parametrize("case", json.loads(FILE.read_text()), ids=lambda case: case["id"])
def test_case_says_what_must_come_of_it(case: dict[str, object]) -> None:
    """The tests are read beside the cases: each names its cards, its engines, both lists."""
    assert all(case[part] for part in ("source", "cards", "engines", "events", "must", "never"))
