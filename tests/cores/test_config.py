"""berth.toml: what is taken, and what is told of one that is wrong (S1)."""

import re
from pathlib import Path

import pytest

from berth.config import Config, Duration, load_config, parse_config, seconds
from berth.errors import BerthError, Code, Exit


def wrong(text: str) -> BerthError:
    with pytest.raises(BerthError) as raised:
        parse_config(text)
    assert raised.value.code is Code.BAD_CONFIG
    assert raised.value.exit_status is Exit.CONFIG
    return raised.value


ENGINES = """\
[daemon]
gpu = ["0", "41:00.0"]
release_grace = "1m30s"

[squatters]
allow = ["Xorg"]

[[engine]]
name = "chat"
start = "llama-server -m a.gguf"
needs_mib = [15000, 9000]
drain_wait = 90
env = { A = "1" }

[[engine]]
name = "images"
start = ["python", "main.py"]
gpu = "gpu0,gpu1"
"""


def test_file_is_read_whole() -> None:
    """S1: strings and lists, bare seconds and durations, tables and entries."""
    config = parse_config(ENGINES)
    chat, images = config.engine
    assert (config.daemon.gpu, config.daemon.release_grace) == (["0", "41:00.0"], 90.0)
    assert (config.squatters.allow, config.squatters.tolerate_mib) == (["Xorg"], 1024)
    assert (chat.needs_mib, chat.drain_wait, chat.env) == ([15000, 9000], 90.0, {"A": "1"})
    assert (images.start, images.gpu, images.pinned) == (["python", "main.py"], "gpu0,gpu1", False)


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "[daemon]\n"])
def test_empty_file_is_all_defaults(text: str) -> None:
    """S1: nothing needs to be configured; H4: the release grace is 30 s."""
    config = parse_config(text)
    assert config == Config()
    assert (config.daemon.gpu, config.daemon.release_grace) == ("all", 30.0)


@pytest.mark.parametrize(
    ("text", "seconds_"),
    [("90", 90.0), ("1.5", 1.5), ('"90s"', 90.0), ('"1m30s"', 90.0), ('"90"', 90.0), ("0", 0.0)],
)
def test_duration_is_a_number_or_a_text(text: str, seconds_: float) -> None:
    """Q3: durations everywhere; a bare number is seconds."""
    assert parse_config(f"[daemon]\nrelease_grace = {text}\n").daemon.release_grace == seconds_


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[daemon]\ngup = "0"\n', 'berth.toml line 2: [daemon] has no key "gup"', "gpu"),
        (
            "[squatters]\n\n\ntolerate = 1\n",
            'berth.toml line 4: [squatters] has no key "tolerate"',
            "tolerate_mib",
        ),
        (
            '[[engine]]\nname = "a"\ngpu = "0"\n\n[[engine]]\nname = "b"\n  "gpuu" = 1\n',
            'berth.toml line 7: [[engine]] has no key "gpuu"',
            "gpu",
        ),
        (
            '[[engine]]\nname = "a"\ndrainslots = "x"\n',
            'berth.toml line 3: [[engine]] has no key "drainslots"',
            "drain_slots",
        ),
        ('\n[deamon]\ngpu = "0"\n', 'berth.toml line 2: the file has no key "deamon"', "daemon"),
        ("\nengines = []\n", 'berth.toml line 2: the file has no key "engines"', "engine"),
    ],
)
def test_unknown_key_is_told_with_its_line_and_the_nearest_name(
    text: str, message: str, hint: str
) -> None:
    """S1: unknown keys are errors with line, key and the nearest right name."""
    error = wrong(text)
    assert (error.message, error.hint) == (message, f"did you mean {hint}?")


def test_key_that_is_near_to_none_is_told_with_all_there_are() -> None:
    """S1: where no name is near, the way out is to see them all."""
    assert wrong("[daemon]\nxyz = 1\n").hint == "it has gpu, release_grace"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[daemon]\ngpu = 3\n",
            "line 2: daemon.gpu: it takes a text in quotes or a list, and this is a whole number",
        ),
        (
            '[daemon]\n\nrelease_grace = "5 s"\n',
            "line 3: daemon.release_grace: '5 s' is no duration; write 90, 90s, 1m30s or 2h",
        ),
        (
            "[daemon]\nrelease_grace = true\n",
            'line 2: daemon.release_grace: a duration is a number or a text such as "1m30s"',
        ),
        (
            '[daemon]\nrelease_grace = ["5s"]\n',
            'line 2: daemon.release_grace: a duration is a number or a text such as "1m30s"',
        ),
        ('[daemon]\nrelease_grace = "-5s"\n', "line 2: daemon.release_grace: '-5s' is no duration"),
        (
            "[squatters]\ntolerate_mib = -1\n",
            "line 2: squatters.tolerate_mib: it takes 0 or more",
        ),
        (
            '[[engine]]\nname = "a"\nneeds_mib = "14000"\n',
            "line 3: engine.needs_mib: it takes a whole number or a list, and this is a text",
        ),
        (
            '[[engine]]\nname = "a"\nneeds_mib = 0\n',
            "line 3: engine.needs_mib: it takes 1 or more",
        ),
        (
            '[[engine]]\nname = "a"\n[[engine]]\nname = "b"\npinned = "yes"\n',
            "line 5: engine.pinned: it takes true or false, and this is a text in quotes",
        ),
        (
            '[[engine]]\nname = "a" # pinned = "no"\npinned = "yes"\n',
            "line 3: engine.pinned: it takes true or false, and this is a text in quotes",
        ),
        ('[[engine]]\nname = ""\n', "line 2: engine.name: it takes a text that is not empty"),
        ('\n[[engine]]\ngpu = "0"\n', 'line 2: engine: it needs a key "name"'),
        (
            '[[engine]]\nname = "a"\nenv = { A = 1 }\n',
            "line 3: engine.env: it takes a text in quotes, and this is a whole number",
        ),
        ('[engine]\nname = "a"\n', "line 1: engine: it takes a list, and this is a table"),
        ("daemon = 3\n", "line 1: daemon: it takes a table, and this is a whole number"),
    ],
)
def test_wrong_value_is_told_with_its_line_and_key(text: str, message: str) -> None:
    """S1: wrong types and bad values are errors that say where."""
    assert wrong(text).message.startswith(f"berth.toml {message}")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param('[[engine]]\nname = "a"\nneeds_mib = [1, "x"]\n', 3),
        pytest.param("# cards\n\ndaemon.gpu = 3\n", 3),
    ],
)
def test_line_is_right_however_the_value_is_written(text: str, line: int) -> None:
    """S1: a wrong line sends a person to a place where nothing is wrong."""
    assert wrong(text).message.startswith(f"berth.toml line {line}: ")


@pytest.mark.parametrize("text", ["-5", "nan", "inf", "-0.5"])
def test_number_that_is_no_duration_is_refused(text: str) -> None:
    """S1: bad values are errors; H4: a grace of nan would never be over."""
    error = wrong(f"[daemon]\nrelease_grace = {text}\n")
    assert error.message.startswith("berth.toml line 2: daemon.release_grace: ")


@pytest.mark.parametrize("priority", ["urgent", "hold", ""])
def test_priority_that_is_none_is_refused(priority: str) -> None:
    """S1, Q1: an entry takes foreground, interactive, batch or background; a hold is a person's."""
    error = wrong(f'[[engine]]\nname = "a"\npriority = "{priority}"\n')
    assert error.message == (
        f"berth.toml line 3: engine.priority: {priority!r} is none of "
        "foreground, interactive, batch, background"
    )


def test_file_that_is_no_toml_is_told_with_its_line() -> None:
    """S1: the parser's own words say where."""
    error = wrong('[daemon]\ngpu = "0\n')
    assert error.message.startswith("berth.toml: ")
    assert "line 2" in error.message


def test_two_entries_of_one_name_are_refused() -> None:
    """R3: `--as NAME` takes its defaults from one entry, so there must be one."""
    error = wrong('[[engine]]\nname = "a"\n[[engine]]\nname = "b"\n[[engine]]\nname = "a"\n')
    assert error.message == 'berth.toml: two [[engine]] entries are called "a"'


def test_engine_is_found_by_its_name() -> None:
    """R3: by the whole name, never by a part of it."""
    config = parse_config(ENGINES)
    found = config.engine_named("images")
    assert found is not None
    assert found.name == "images"
    assert config.engine_named("image") is None


def test_file_that_is_not_there_is_an_empty_one(tmp_path: Path) -> None:
    """S1: nobody has to write one."""
    assert load_config(tmp_path / "berth.toml") == Config()


def test_file_that_somebody_named_must_be_there(tmp_path: Path) -> None:
    """S1: a typo in BERTH_CONFIG is not a berthd without its settings."""
    path = tmp_path / "typo.toml"
    with pytest.raises(BerthError) as raised:
        load_config(path, named=True)
    assert (raised.value.code, raised.value.exit_status) == (Code.BAD_CONFIG, Exit.CONFIG)
    assert raised.value.message == f"BERTH_CONFIG names {path}, and there is no such file"


def test_file_is_named_as_it_is_called(tmp_path: Path) -> None:
    """S1: `BERTH_CONFIG` may name another; the error names that one."""
    path = tmp_path / "other.toml"
    path.write_text("\nx = 1\n")
    with pytest.raises(BerthError, match=f"^{re.escape(str(path))} line 2: "):
        load_config(path)


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None) -> None:
    """S1: an unreadable file is an error with its path, never a traceback or an empty one."""
    path = tmp_path / "berth.toml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(BerthError, match="cannot be read") as raised:
        load_config(path)
    assert str(path) in raised.value.message
    assert raised.value.exit_status is Exit.CONFIG


@pytest.mark.parametrize(("given", "found"), [(None, 10.0), (Duration(0.0), 0.0), (Duration(3), 3)])
def test_configured_duration_comes_before_the_default(given: Duration | None, found: float) -> None:
    """S1: a configured 0 is a value, not a missing one."""
    assert seconds(given, 10.0) == found


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ('env = { A = "a\\u0000" }', "engine.env.A: there is a NUL"),
        ('env = { "A\\u0000" = "a" }', "engine.env.A\\x00: there is a NUL"),
        ('start = ["a", "b\\u0000"]', "line 3: engine.start: there is a NUL"),
        ('cwd = "\\u0000"', "line 3: engine.cwd: there is a NUL"),
        (f"needs_mib = {'9' * 5000}", "5000 digits"),
        ("needs_mib = 99999999999999999999", "line 3: engine.needs_mib"),
        (f"start = {'[' * 5000}", "recursion"),
    ],
)
def test_what_no_system_call_takes_is_refused_with_its_line(lines: str, says: str) -> None:
    """S1: a slip in berth.toml is told when it is read, not by a command that does not start."""
    with pytest.raises(BerthError) as raised:
        parse_config(f'[[engine]]\nname = "a"\n{lines}\n')
    assert says in raised.value.message
