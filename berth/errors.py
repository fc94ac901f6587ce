"""Errors, refusal codes and exit statuses: what a person is told, and what a script can test."""

from enum import IntEnum, StrEnum

from berth.words import plain


class Code(StrEnum):
    """Why a request was refused or an operation failed. Stable: scripts compare these."""

    NO_CARD = "no_card"
    NO_ROOM = "no_room"
    TOO_BIG = "too_big"
    WAIT_EXPIRED = "wait_expired"
    OUTRANKED = "outranked"
    PINNED = "pinned"
    CLAIMED = "claimed"
    UNMEASURED = "unmeasured"
    SHUTTING_DOWN = "shutting_down"
    BAD_REQUEST = "bad_request"
    NOT_FOUND = "not_found"
    NOT_YOURS = "not_yours"
    MULTI_CARD_PARK = "multi_card_park"
    NO_JOURNAL = "no_journal"
    WITHDRAWN = "withdrawn"
    INTERNAL = "internal"
    NO_BERTH = "no_berth"
    BAD_CONFIG = "bad_config"


class Exit(IntEnum):
    """Exit statuses of the command line (after sysexits.h where it has one)."""

    OK = 0
    NEEDS_A_PERSON = 1
    USAGE = 64
    UNAVAILABLE = 69
    NOT_WRITTEN = 74
    NOT_IN_TIME = 75
    REFUSED = 76
    CONFIG = 78
    NOT_EXECUTABLE = 126
    NOT_THERE = 127
    WITHDRAWN = 130
    STOPPED_BY_BERTH = 143


class BerthError(Exception):
    """Something a person or a script is told: a sentence, a way out, a code, an exit status."""

    def __init__(self, code: Code, message: str, *, hint: str = "", exit_status: Exit) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.exit_status = exit_status


class BerthBug(AssertionError):  # noqa: N818 -- it is no error to handle: the actor dies of it
    """Berth broke a rule of its own."""


def usage_error(message: str, hint: str = "") -> BerthError:
    """Return the error for what was typed, or stands in berth.toml, and makes no sense."""
    return BerthError(Code.BAD_REQUEST, message, hint=hint, exit_status=Exit.USAGE)


def no_utf8(text: str) -> BerthError:
    """Return the error for a name or a reason that came in another encoding."""
    return usage_error(f"'{plain(text)}' is not UTF-8", "type it anew, where the locale is UTF-8")


def refusal_status(code: str) -> Exit:
    """Return the status after berthd refused with that code: 64 where what was asked is wrong."""
    return Exit.USAGE if code == Code.BAD_REQUEST else Exit.REFUSED
