"""From flags and berth.toml to what a run needs (R1 to R4, R10, M3)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from berth.config import Config, parse_config
from berth.errors import BerthError, Code, Exit
from berth.ids import Key
from berth.marks import mark_of
from berth.paths import boot_id, boot_marker
from berth.run.plan import RunFlags, plan_run
from berth.run.wrapper import RunPlan

ENTRY = """\
[[engine]]
name = "chat"
start = "llama-server -m 'my model.gguf' --port 8081"
gpu = "gpu1"
needs_mib = 14000
priority = "foreground"
drain_slots = "http://127.0.0.1:8081"
unload_url = "http://127.0.0.1:8081/unload"
drain_wait = "1m"
grace = 20
min_turn = 30
start_limit = 40
wait = 50
pinned = true
fail_closed = true
env = { HF_HOME = "/models" }
cwd = "/models"

[[engine]]
name = "plain"
start = ["python", "main.py"]

[[engine]]
name = "remote"
"""
COMMAND = ("/opt/bin/llama-server", "-m", "a.gguf")


def plan(*command: str, **flags: Any) -> RunPlan:
    """Plan a run beside the entries above. Without a `folder` no berthd was ever there."""
    environ: Mapping[str, str] = flags.pop("environ", {})
    socket: Path = flags.pop("folder", Path("/nowhere")) / "berth.sock"
    return plan_run(command, RunFlags(**flags), parse_config(ENTRY), socket, environ)


def refused(*command: str, **flags: Any) -> BerthError:
    with pytest.raises(BerthError) as raised:
        plan(*command, **flags)
    assert (raised.value.code, raised.value.exit_status) == (Code.BAD_REQUEST, Exit.USAGE)
    return raised.value


DEFAULTS: dict[str, Any] = {
    "needs_mib": None,
    "cards": None,
    "priority": None,
    "wait_s": 120.0,
    "min_turn_s": 0.0,
    "drain_wait_s": 300.0,
    "grace_s": 10.0,
    "start_limit_s": 900.0,
    "pinned": False,
    "fail_closed": False,
    "group": None,
    "boundary": False,
    "wrapped": True,
}
OF_THE_ENTRY: dict[str, Any] = {
    "needs_mib": 14000,
    "cards": ["gpu1"],
    "priority": "foreground",
    "wait_s": 50.0,
    "min_turn_s": 30.0,
    "drain_wait_s": 60.0,
    "grace_s": 20.0,
    "start_limit_s": 40.0,
    "pinned": True,
    "fail_closed": True,
    "boundary": True,
}


def subset(terms: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: terms[name] for name in names}


def test_run_without_flags_has_the_defaults() -> None:
    """R2, Q3, Q4, H2, H3, Q11: what holds when nobody says anything."""
    terms = plan(*COMMAND).terms
    assert subset(terms, DEFAULTS) == DEFAULTS


def test_named_run_takes_defaults_from_its_entry() -> None:
    """R3: `--as NAME` takes defaults from NAME's entry, its environment and directory too."""
    run = plan(*COMMAND, as_="chat")
    assert subset(run.terms, OF_THE_ENTRY) == OF_THE_ENTRY
    assert (run.slots_url, run.unload_url) == (
        "http://127.0.0.1:8081",
        "http://127.0.0.1:8081/unload",
    )
    assert (run.environment, run.directory) == ({"HF_HOME": "/models"}, "/models")
    assert run.command == COMMAND


@pytest.mark.parametrize(
    ("flags", "terms"),
    [
        ({"needs_mib": "9000"}, {"needs_mib": 9000}),
        ({"needs_mib": "15000,9000"}, {"needs_mib": [15000, 9000]}),
        ({"gpu": "0"}, {"cards": ["0"]}),
        ({"gpu": "gpu0, 41:00.0"}, {"cards": ["gpu0", "41:00.0"]}),
        ({"priority": "batch"}, {"priority": "batch"}),
        ({"wait": "0"}, {"wait_s": 0.0}),
        ({"wait": "1m30s"}, {"wait_s": 90.0}),
        ({"min_turn": "5"}, {"min_turn_s": 5.0}),
        ({"drain_wait": "0s"}, {"drain_wait_s": 0.0}),
        ({"grace": "1.5s"}, {"grace_s": 1.5}),
        ({"start_limit": "2h"}, {"start_limit_s": 7200.0}),
        ({"group": "llama-swap"}, {"group": "llama-swap"}),
    ],
)
@pytest.mark.parametrize("name", ["chat", "nobody"])
def test_flag_comes_before_the_entry_and_its_own_default(
    name: str, flags: dict[str, str], terms: dict[str, Any]
) -> None:
    """R3: flags over entry over defaults, each by itself; a typed 0 is a value."""
    expected = {**(OF_THE_ENTRY if name == "chat" else {}), **terms}
    assert subset(plan(*COMMAND, as_=name, **flags).terms, expected) == expected


@pytest.mark.parametrize("flag", ["pinned", "fail_closed"])
def test_switch_is_on_when_flag_or_entry_says_so(flag: str) -> None:
    """R3: a switch that is off on the command line was not typed."""
    assert plan(*COMMAND, **{flag: True}).terms[flag] is True
    assert plan(*COMMAND, as_="chat").terms[flag] is True
    assert plan(*COMMAND, as_="plain").terms[flag] is False


def test_wrapper_and_berthd_are_told_the_same() -> None:
    """H2, H3: the wrapper's own deadlines are those it sends to berthd."""
    run = plan(*COMMAND, as_="chat", grace="7", unload="http://127.0.0.1:1/x")
    options = run.options
    assert (options.grace, options.drain_wait, options.wait) == (7.0, 60.0, 50.0)
    assert (options.boundary, options.unload, options.fail_closed) == (True, True, True)
    assert (run.terms["grace_s"], run.terms["boundary"]) == (7.0, True)


def test_slots_url_makes_a_boundary() -> None:
    """H2: a run with --drain-slots is no job."""
    run = plan(*COMMAND, drain_slots="http://127.0.0.1:9/upstream/m")
    assert (run.terms["boundary"], run.options.boundary) == (True, True)
    assert run.slots_url == "http://127.0.0.1:9/upstream/m"


# --- names and keys -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "flags", "name", "exclusive"),
    [
        (COMMAND, {}, "llama-server", False),
        (("python",), {}, "python", False),
        (("./x/",), {}, "command", False),
        (COMMAND, {"as_": "chat"}, "chat", True),
        (COMMAND, {"as_": "nobody"}, "nobody", True),
    ],
)
def test_name_is_the_given_one_or_the_commands(
    command: Sequence[str], flags: dict[str, Any], name: str, exclusive: bool
) -> None:
    """R1, R10: a name given by --as is one lease at a time; one made up gets a number."""
    terms = plan(*command, **flags).terms
    assert (terms["name"], terms["exclusive"], terms["numbered"]) == (
        name,
        exclusive,
        not exclusive,
    )


def test_every_run_has_a_key_of_its_own() -> None:
    """S6: the key finds the request again, so no two runs share it; R5: the mark is made of it."""
    one, other = plan(*COMMAND), plan(*COMMAND)
    assert one.terms["key"] != other.terms["key"]
    assert one.options.mark == mark_of(Key(one.terms["key"]))
    assert one.terms["key"] not in one.options.mark


# --- what is run ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("chat", ["llama-server", "-m", "my model.gguf", "--port", "8081"]),
        ("plain", ["python", "main.py"]),
    ],
)
def test_named_run_without_a_command_runs_its_entrys_start(name: str, command: list[str]) -> None:
    """R3, S1: a string is split by shell rules, without a shell; a list is taken as it is."""
    assert list(plan(as_=name).command) == command


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({}, "nothing to run"),
        ({"group": "chat"}, "nothing to run"),
        ({"as_": "nobody"}, 'no [[engine]] "nobody"'),
        ({"as_": "remote"}, '[[engine]] "remote" in berth.toml has no start'),
    ],
)
def test_run_with_nothing_to_run_is_a_usage_error(flags: dict[str, Any], words: str) -> None:
    """R3, R6: exit 64; an entry matched only through --group never lends its start."""
    assert words in refused(**flags).message


@pytest.mark.parametrize("start", ['"llama-server -m \'model.gguf"', '""', "[]"])
def test_start_that_is_no_command_is_told_and_not_run(start: str) -> None:
    """S1, R6: a slip in berth.toml is a sentence, not a traceback and not exit 126."""
    config: Config = parse_config(f'[[engine]]\nname = "a"\nstart = {start}\n')
    with pytest.raises(BerthError):
        plan_run((), RunFlags(as_="a"), config, Path("/nowhere/berth.sock"), {})


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"wait": "5 s"}, "--wait: '5 s' is no duration"),
        ({"grace": "-1"}, "--grace: '-1' is no duration"),
        ({"min_turn": ""}, "--min-turn: '' is no duration"),
        ({"drain_wait": "x"}, "--drain-wait: 'x' is no duration"),
        ({"start_limit": "1d"}, "--start-limit: '1d' is no duration"),
        ({"needs_mib": "0"}, "--needs-mib: '0' is no number of MiB"),
        ({"needs_mib": "-5"}, "--needs-mib: '-5' is no number of MiB"),
        ({"needs_mib": "14G"}, "--needs-mib: '14G' is no number of MiB"),
        ({"needs_mib": "1,,2"}, "--needs-mib: '1,,2' is no number of MiB"),
        ({"drain_slots": "127.0.0.1:8080"}, "--drain-slots: '127.0.0.1:8080' is no URL"),
        ({"drain_slots": ""}, "--drain-slots: '' is no URL"),
        ({"drain_slots": "http://:8080"}, "--drain-slots: 'http://:8080' is no URL"),
        ({"drain_slots": "http://host:port"}, "--drain-slots: 'http://host:port' is no URL"),
        ({"unload": "localhost:8080/unload"}, "--unload: 'localhost:8080/unload' is no URL"),
        ({"gpu": "gpu0,"}, "--gpu: 'gpu0,' leaves a card unnamed"),
        ({"key_file": Path("/nowhere/key")}, "--key-file: /nowhere/key: No such file"),
    ],
)
def test_nonsense_in_a_flag_is_a_usage_error_that_names_it(
    flags: dict[str, Any], words: str
) -> None:
    """R6: exit 64, before anything is asked or started."""
    assert words in refused(*COMMAND, **flags).message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('drain_slots = "127.0.0.1:8080"', "drain_slots: '127.0.0.1:8080' is no URL"),
        ('unload_url = "ftp://host/x"', "unload_url: 'ftp://host/x' is no URL"),
        ('gpu = "gpu0,"', "gpu: 'gpu0,' leaves a card unnamed"),
        ('gpu = ["any", "gpu1"]', "gpu: any stands alone"),
    ],
)
def test_nonsense_in_an_entry_names_the_entry_and_not_a_flag(line: str, words: str) -> None:
    """S1: who typed no flag must not be told about one."""
    config: Config = parse_config(f'[[engine]]\nname = "a"\n{line}\n')
    with pytest.raises(BerthError) as refusal:
        plan_run(["true"], RunFlags(as_="a"), config, Path("/nowhere/berth.sock"), {})
    assert refusal.value.message.startswith(f'[[engine]] "a" in berth.toml: {words}')


def test_engines_key_is_read_from_its_file(tmp_path: Path) -> None:
    """G9: the engine's own key goes to that engine; a line's end is none of it."""
    (tmp_path / "key").write_text("secret\n")
    assert plan(*COMMAND, key_file=tmp_path / "key").engine_key == "secret"
    assert plan(*COMMAND).engine_key is None


# --- the cards it is shown, and whether berthd was there ------------------------------------------


@pytest.mark.parametrize(
    ("flags", "environ", "shown"),
    [
        ({}, {}, False),
        ({"gpu": "0"}, {}, True),
        ({"as_": "chat"}, {}, True),
        ({"gpu": "0"}, {"CUDA_VISIBLE_DEVICES": "3"}, False),
        ({"gpu": "0"}, {"CUDA_VISIBLE_DEVICES": ""}, False),
    ],
)
def test_command_is_shown_its_cards_when_it_names_some(
    flags: dict[str, Any], environ: dict[str, str], shown: bool
) -> None:
    """M3: only when the run names cards, and never over what the environment sets."""
    options = plan(*COMMAND, environ=environ, **flags).options
    assert (options.names_cards and not options.environment_names & set(environ)) is shown


def test_variable_of_one_vendor_says_nothing_about_the_other() -> None:
    """M3: ROCR_VISIBLE_DEVICES likewise: it is held back only where it is set itself."""
    options = plan(*COMMAND, gpu="0", environ={"CUDA_VISIBLE_DEVICES": "0"}).options
    assert options.names_cards


def test_what_the_entry_sets_counts_as_the_environment() -> None:
    """M3: a variable in the entry's env is set already."""
    config = parse_config('[[engine]]\nname = "a"\nenv = { CUDA_VISIBLE_DEVICES = "1" }\n')
    flags = RunFlags(as_="a", gpu="0")
    run = plan_run(COMMAND, flags, config, Path("/nowhere/berth.sock"), {"HOME": "/h"})
    assert run.options.environment_names == {"CUDA_VISIBLE_DEVICES", "HOME"}


def test_berthd_that_ran_this_boot_is_waited_for(tmp_path: Path) -> None:
    """R4: with none since boot the command runs at once, else after 10 s of trying."""
    assert not plan(*COMMAND, folder=tmp_path).options.berthd_seen_this_boot
    boot_marker(tmp_path / "berth.sock").write_text(boot_id())
    assert plan(*COMMAND, folder=tmp_path).options.berthd_seen_this_boot
