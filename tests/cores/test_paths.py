"""Where Berth's files are (S4, S6), and whose the socket's directory may be."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from berth.errors import BerthError, Code, Exit
from berth.paths import (
    berthd_ran_this_boot,
    boot_id,
    boot_marker,
    config_path,
    events_path,
    prepare_socket_dir,
    socket_path,
    state_dir,
)

LONGEST = 100


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ("/a/x.sock", {"BERTH_SOCKET": "/b/x.sock", "XDG_RUNTIME_DIR": "/c"}, "/a/x.sock"),
        (None, {"BERTH_SOCKET": "/b/x.sock", "XDG_RUNTIME_DIR": "/c"}, "/b/x.sock"),
        ("", {"BERTH_SOCKET": "/b/x.sock"}, "/b/x.sock"),
        (None, {"BERTH_SOCKET": "", "XDG_RUNTIME_DIR": "/c"}, "/c/berth.sock"),
        (None, {"XDG_RUNTIME_DIR": "/c"}, "/c/berth.sock"),
    ],
)
def test_socket_is_where_the_first_of_the_list_says(
    given: str | None, environ: Mapping[str, str], expected: str, tmp_path: Path
) -> None:
    """S4: --socket, BERTH_SOCKET, $XDG_RUNTIME_DIR, in that order, for the daemon and everybody."""
    assert socket_path(given, environ, tmp_path) == Path(expected)


@pytest.mark.parametrize("runtime", [None, "", "relative/dir"])
def test_without_a_runtime_dir_the_user_directory_is_taken_if_it_is_there(
    runtime: str | None, tmp_path: Path
) -> None:
    """S4: ssh and cron set no XDG_RUNTIME_DIR, and must find the same berthd."""
    environ = {} if runtime is None else {"XDG_RUNTIME_DIR": runtime}
    assert socket_path(None, environ, tmp_path) == tmp_path / "berth.sock"
    missing = socket_path(None, environ, tmp_path / "no")
    assert missing == Path(f"/tmp/berth-{os.getuid()}/berth.sock")


def test_relative_socket_is_taken_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4: berthd and its clients may stand in other directories."""
    monkeypatch.chdir(tmp_path)
    assert socket_path("x.sock", {}) == tmp_path / "x.sock"


def test_socket_path_over_a_hundred_bytes_is_refused() -> None:
    """S4: the kernel would refuse it later, in words that nobody understands."""
    longest = "/" + "a" * (LONGEST - 1)
    assert socket_path(longest, {}) == Path(longest)
    with pytest.raises(BerthError, match="longer than 100 bytes") as raised:
        socket_path(longest + "a", {})
    assert (raised.value.code, raised.value.exit_status) == (Code.BAD_CONFIG, Exit.CONFIG)
    assert "--socket" in raised.value.hint


def test_length_of_a_socket_path_is_counted_in_bytes() -> None:
    """S4: 100 bytes, not 100 letters."""
    with pytest.raises(BerthError, match="longer than"):
        socket_path("/" + "ü" * 50, {})


def test_length_is_checked_wherever_the_path_comes_from() -> None:
    """S4: a long XDG_RUNTIME_DIR is refused like a long --socket."""
    with pytest.raises(BerthError, match="longer than"):
        socket_path(None, {"XDG_RUNTIME_DIR": "/" + "a" * 99})


@pytest.mark.parametrize(
    ("socket", "events"),
    [("/r/berth.sock", "/r/berth.events.sock"), ("/r/mine", "/r/mine.events.sock")],
)
def test_events_are_published_beside_the_socket(socket: str, events: str) -> None:
    """Spec 16: `…/berth.sock` has its PUB socket at `…/berth.events.sock`."""
    assert events_path(Path(socket)) == Path(events)


# --- the socket's directory -----------------------------------------------------------------------


def test_missing_directory_is_made_for_its_owner_only(tmp_path: Path) -> None:
    """S4: a directory of one's own, 0700."""
    socket = tmp_path / "berth-1000" / "berth.sock"
    prepare_socket_dir(socket)
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    prepare_socket_dir(socket)


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_directory_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    """S4: whoever may write there can put a socket of their own in berthd's place."""
    tmp_path.chmod(mode)
    with pytest.raises(BerthError, match="others could put a socket of their own into") as raised:
        prepare_socket_dir(tmp_path / "berth.sock")
    assert raised.value.exit_status is Exit.CONFIG


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o1777])
def test_directory_where_only_the_owner_of_a_file_moves_it_will_do(
    tmp_path: Path, mode: int
) -> None:
    """S4: a sticky directory (/tmp itself, named by --socket) keeps a socket its owner's."""
    tmp_path.chmod(mode)
    prepare_socket_dir(tmp_path / "berth.sock")


def test_directory_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4 (unlike the notes): owner checked, for /tmp/berth-<uid> can be squatted."""
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, 12345)
    else:
        mine = os.getuid()
        monkeypatch.setattr("berth.paths.os.getuid", lambda: mine + 1)
    with pytest.raises(BerthError, match="others could put a socket"):
        prepare_socket_dir(tmp_path / "berth.sock")


def test_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """S4: what is in the way is named, with the way out, and no traceback."""
    (tmp_path / "file").touch()
    with pytest.raises(BerthError, match=r"cannot use .*/file") as raised:
        prepare_socket_dir(tmp_path / "file" / "berth.sock")
    assert "BERTH_SOCKET" in raised.value.hint


# --- state, config, boot --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"BERTH_STATE_DIR": "/a", "XDG_STATE_HOME": "/b"}, "/a"),
        ({"XDG_STATE_HOME": "/b"}, "/b/berth"),
        ({"XDG_STATE_HOME": "b"}, str(Path.home() / ".local/state/berth")),
        ({}, str(Path.home() / ".local/state/berth")),
    ],
)
def test_state_is_kept_where_xdg_says(environ: Mapping[str, str], expected: str) -> None:
    """S6: under $XDG_STATE_HOME/berth; the demo and tests have their own."""
    assert state_dir(environ) == Path(expected)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"BERTH_CONFIG": "/a.toml", "XDG_CONFIG_HOME": "/b"}, "/a.toml"),
        ({"XDG_CONFIG_HOME": "/b"}, "/b/berth/berth.toml"),
        ({"XDG_CONFIG_HOME": "b"}, str(Path.home() / ".config/berth/berth.toml")),
        ({}, str(Path.home() / ".config/berth/berth.toml")),
    ],
)
def test_config_is_where_xdg_says(environ: Mapping[str, str], expected: str) -> None:
    """S1: $XDG_CONFIG_HOME/berth/berth.toml."""
    assert config_path(environ) == Path(expected)


@pytest.mark.parametrize(("content", "ran"), [(None, False), ("another boot", False), ("", False)])
def test_no_berthd_ran_this_boot_without_its_mark(
    tmp_path: Path, content: str | None, ran: bool
) -> None:
    """R4: a mark of an earlier boot makes nobody wait ten seconds for a berthd."""
    socket = tmp_path / "berth.sock"
    if content is not None:
        boot_marker(socket).write_text(content)
    assert berthd_ran_this_boot(socket) is ran


def test_berthd_that_ran_this_boot_has_left_its_mark(tmp_path: Path) -> None:
    """R4: a restart of berthd must not start an engine beside a holder."""
    socket = tmp_path / "berth.sock"
    boot_marker(socket).write_text(boot_id() + "\n")
    assert berthd_ran_this_boot(socket)
    assert not berthd_ran_this_boot(tmp_path / "other.sock")


def test_damaged_boot_mark_says_nothing(tmp_path: Path) -> None:
    """R4: a mark that is no text is no mark of this boot."""
    boot_marker(tmp_path / "b.sock").write_bytes(b"\xff\xfe")
    assert not berthd_ran_this_boot(tmp_path / "b.sock")


def test_without_a_home_the_sentence_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """S6: a container may run as a user whom nobody knows."""

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    for where in (state_dir, config_path):
        with pytest.raises(BerthError) as raised:
            where({})
        assert (raised.value.exit_status, raised.value.hint) == (Exit.CONFIG, "set HOME")
