"""Reference pages name all that the code has, and nothing that it does not have."""

import re
from pathlib import Path
from typing import get_args

import pytest

from berth.actors.card.messages import HolderWord
from berth.errors import Code, Exit
from berth.kinds import KINDS
from berth.lease import Order
from berth.standing import How
from berth.wire import Answer, AnyOp, ErrorBody, EventMessage, OrderMessage
from tests.docs.pages import ROOT, name_of, pages

PROTOCOL = (ROOT / "docs" / "protocol.md").read_text()
EXIT_CODES = (ROOT / "docs" / "exit-codes.md").read_text()

OPS = {op.__struct_config__.tag: op for op in get_args(AnyOp)}


def named(word: str, text: str) -> bool:
    """Tell whether a page has that word as code: `word`, or as a key in an example."""
    return f"`{word}`" in text or f'"{word}"' in text


@pytest.mark.parametrize("op", OPS)
def test_protocol_names_every_op_and_its_fields(op: str) -> None:
    """A client in another language has this page and nothing else."""
    assert f"\n| `{op}` |" in PROTOCOL
    missing = [field for field in OPS[op].__struct_fields__ if not named(field, PROTOCOL)]
    assert missing == []


@pytest.mark.parametrize("said", [Answer, ErrorBody, OrderMessage, EventMessage])
def test_protocol_names_all_that_berthd_says(said: type) -> None:
    """The answers' fields too; an event's own facts are written beside them."""
    fields = {field for field in said.__struct_fields__ if field != "facts"}  # type: ignore[attr-defined]
    assert {field for field in fields if not named(field, PROTOCOL)} == set()


def test_protocol_has_no_op_that_is_not_there() -> None:
    """A row that outlived its op sends people into an error."""
    table = PROTOCOL.partition("## Ops")[2].partition("## A lease")[0]
    assert set(re.findall(r"^\| `([a-z.]+)` \|", table, re.MULTILINE)) == set(OPS)


def test_protocol_names_every_order_and_word() -> None:
    """What a holder may hear, and what it may answer."""
    for word in [*Order, *HolderWord]:
        assert named(word.value, PROTOCOL), word


def test_exit_statuses_are_those_of_the_code() -> None:
    """A script tests these figures."""
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", EXIT_CODES, re.MULTILINE)
    assert {name: int(status) for status, name in rows} == {e.name: e.value for e in Exit}


def test_codes_are_those_of_the_code() -> None:
    """Every refusal that a client can meet, and no other."""
    table = EXIT_CODES.partition("## Codes")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == {code.value for code in Code}


def test_troubleshooting_says_what_helps_against_every_reason_to_wait() -> None:
    """Who waits is told why; here they find what to do about it."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    reasons = re.findall(r"^\| [^|]+ \| `(\w+)` \| [^|]+ \|$", page, re.MULTILINE)
    assert sorted(reasons) == sorted(how.value for how in How)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A page that was renamed leaves nobody standing; the heading must be there too."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        found = (page.parent / file) if file else page
        assert found.exists(), f"{name_of(page)}: {target}"
        if heading:
            slugs = {_slug(line) for line in found.read_text().splitlines() if line[:1] == "#"}
            assert heading in slugs, f"{name_of(page)}: {target}"


def _slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lstrip("# ").lower()).replace(" ", "-")


def test_every_page_can_be_found_from_the_index() -> None:
    """A page that nothing links to is not read."""
    index = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name
    for page in (ROOT / "docs" / "how-to").glob("*.md"):
        assert f"(how-to/{page.name})" in index, page.name


def test_protocol_names_every_kind_of_event_and_no_other() -> None:
    """Who listens picks by kind; `berth events --kind` takes these and no others."""
    said = " ".join(PROTOCOL.partition("Kinds: ")[2].split()).rstrip(".")
    families = (part.partition(".` ") for part in said.split("; "))
    assert {name.strip("`"): tuple(kinds.split(", ")) for name, _, kinds in families} == KINDS


def test_every_kind_that_is_written_is_known_and_every_known_one_is_written() -> None:
    """A kind that is missing from the list could not be asked for."""
    source = "\n".join(path.read_text() for path in sorted((ROOT / "berth").rglob("*.py")))
    of_leases = re.findall(r"(?:lease|waiter)_event\(\s*\"([a-z]+)\"", source)
    others = re.findall(r"\"((?:card|engine|stowaway|alert|node)\.[a-z]+)\"", source)
    written = {f"lease.{kind}" for kind in of_leases} | set(others) - {"card.list"}
    known = {f"{family}.{kind}" for family, kinds in KINDS.items() for kind in kinds}
    assert written == known
