"""`berth hold`, `berth release`: a person takes cards, and gives them back."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from berth.cli.completion import complete_cards, complete_holds
from berth.cli.context import SocketOption, connect, duration
from berth.errors import BerthError, Code, usage_error
from berth.ids import RequestId, lease_of
from berth.streams import say
from berth.units import Seconds, show_duration
from berth.wire import MOST_MIB
from berth.words import plain

if TYPE_CHECKING:
    from berth.client import Client

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TAKEN_BACK_WITHIN: Final = 2.0  # seconds; berthd finds out by itself that a client is gone


def hold(
    cards: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CARD…|all]",
            help="which cards; the first, if none is named",
            autocompletion=complete_cards,
        ),
    ] = None,
    for_: Annotated[
        str | None, typer.Option("--for", metavar="DUR", help="until then: 45m, 2h [until release]")
    ] = None,
    needs_mib: Annotated[
        int | None,
        typer.Option(
            "--needs-mib",
            metavar="N",
            min=1,
            max=MOST_MIB,
            help="so much of it only [the whole card]",
        ),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="what for; status shows it")
    ] = "",
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="do not wait until the holders have finished")
    ] = False,
    socket: SocketOption = None,
) -> int:
    """Take a card for yourself: whoever has it is asked to finish, and nobody else gets it.

    It is yours until berth release, or until its time is over, whatever becomes of this shell or
    of berthd. Ctrl-C while it waits takes it back.

    Examples:
      berth hold                          the first card, until you release it

      berth hold gpu1 --for 2h --reason "a game"

      berth hold all --no-wait
    """
    span = None if for_ is None else duration(for_)
    if span is not None and span <= 0:
        raise usage_error("--for: a hold lasts longer than that")
    fields = {
        "cards": cards or None,
        "needs_mib": needs_mib,
        "for_s": span,
        "reason": reason,
        "wait": not no_wait,
    }
    if cards and "all" in cards:
        fields |= {"cards": None, "all": True}
    with connect(socket) as client:
        if no_wait:
            answer = client.call("hold", fields)
            print(f"asked for it ({', '.join(answer['requests'])}); see:  berth status")
            return 0
        waiting = _Waiting()
        try:
            with _interruptible():
                answer = client.call("hold", fields, waiting.tell)
        except _SignalledError as signalled:
            say(f"berth: {waiting.take_back(client)}\n")
            return 128 + signalled.number
    held = ", ".join(card["card"] for card in answer["cards"])
    until = "until you release it" if span is None else f"for {show_duration(Seconds(span))}"
    print(f"you hold {held} {until}; give it back with:  berth release")
    return 0


class _SignalledError(BaseException):
    """A person does not wait any longer, or the terminal is gone."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _interruptible() -> Iterator[None]:
    """Turn the signals that end a command into an error; one that is ignored stays ignored."""

    def on_signal(number: int, _: FrameType | None) -> None:
        raise _SignalledError(number)

    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Waiting:
    """Tells why it waits, each reason once; takes back what waits."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._requests: list[RequestId] = []

    def take_back(self, client: "Client") -> str:
        """Withdraw what was asked for, on every card. Return what a person is told of it."""
        try:
            client.call("hello", within=_TAKEN_BACK_WITHIN)  # by then each request has its number
            for request in self._requests:
                _end_request(client, request)
        except BerthError:
            return "berthd does not answer; it withdraws this once it sees that nobody waits"
        return "withdrawn"

    def tell(self, stands: dict[str, Any]) -> None:
        """Tell a reason, if it is news."""
        request, why = RequestId(stands.get("request", "")), stands.get("why", "")
        if request and request not in self._requests:
            self._requests.append(request)
        news = ",".join(f"{b['who']} {b['how']}" for b in stands.get("blockers", ()))
        if why and news and self._told.get(request) != news:
            self._told[request] = news
            say(f"berth: {stands.get('card', '')}: {plain(why)}\n")


def _end_request(client: "Client", request: RequestId) -> None:
    """Withdraw a request, or give back the lease of its number if it was granted meanwhile."""
    ends = (
        ("withdraw", {"request": request}),
        ("release", {"lease": lease_of(request)}),
    )
    for op, fields in ends:
        try:
            client.call(op, fields, within=_TAKEN_BACK_WITHIN)
        except BerthError as error:
            if error.code is not Code.NOT_FOUND:
                raise
        else:
            return


def release(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CARD…|all|LEASE]",
            help="which holds; every one, if nothing is named",
            autocompletion=complete_holds,
        ),
    ] = None,
    socket: SocketOption = None,
) -> None:
    """Give back cards that a person holds (berth hold).

    Examples:
      berth release           every hold

      berth release gpu1

      berth release L7
    """
    with connect(socket) as client:
        released, withdrawn = [], []
        for fields in _targets(what or []):
            answer = client.call("release", fields)
            released += answer["released"]
            withdrawn += answer["withdrawn"]
    if not released and not withdrawn:
        print("nobody holds a card")
        return
    parts = []
    if released:
        parts.append(f"released {', '.join(released)}")
    if withdrawn:
        parts.append(f"withdrew {', '.join(withdrawn)}")
    print("; ".join(parts))


def _targets(what: list[str]) -> list[dict[str, Any]]:
    """Return the operations for what was named: leases and requests apart, cards together."""
    if not what or "all" in what:
        return [{"all": True}]
    numbered = [word for word in what if _is_number(word)]
    cards = [word for word in what if not _is_number(word)]
    found: list[dict[str, Any]] = [{"lease": word} for word in numbered]
    return [*found, {"cards": cards}] if cards else found


def _is_number(word: str) -> bool:
    """Tell whether a word is a lease, a request or a hold's name, and no card."""
    named = word[:1] in {"L", "r"} and word[1:].isdecimal()
    return named or word == "hold" or word.startswith("hold-")
