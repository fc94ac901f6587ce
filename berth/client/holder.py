"""What a script can see of its lease, whether it waits in a thread or in an event loop."""

import os
from pathlib import Path

from berth.client.call import nobody_there
from berth.client.messages import Failure, LeasedCard
from berth.client.refusals import LeaseRefused, LeaseStopped, NoBerth, WaitExpired
from berth.client.state import Holding, Over, Tenancy
from berth.errors import BerthError, Code
from berth.visible import visible


class Holder:
    """A script's lease, as far as the script can see it."""

    def __init__(self, tenancy: Tenancy, path: Path) -> None:
        self._tenancy = tenancy
        self._path = path

    @property
    def _held(self) -> Holding:
        phase = self._tenancy.phase
        if isinstance(phase, Holding):
            return phase
        message = "this script holds no lease now"
        raise LeaseRefused(Code.NOT_FOUND, message, "use it inside its with block")

    @property
    def id(self) -> str:
        """The lease's id, `L7`. It is another one after the script gave way and came back."""
        return self._held.lease

    @property
    def name(self) -> str:
        """What the lease is called in `berth status`."""
        return self._held.name

    @property
    def cards(self) -> tuple[LeasedCard, ...]:
        """The cards it holds."""
        return self._held.cards

    @property
    def wanted(self) -> bool:
        """Whether berthd wants the card back. It turns False again when nobody waits any more."""
        return self._tenancy.wanted

    @property
    def wanted_why(self) -> str:
        """For whom or why the card is wanted: `for chat`. Empty when it is not."""
        phase = self._tenancy.phase
        return phase.why if isinstance(phase, Holding) else ""

    def environment(self) -> dict[str, str]:
        """Return what shows a library these cards only, to be set before it looks (M3).

        Empty where the environment says it already, or the driver names no UUID.
        """
        cards = self.cards
        vendor = cards[0].vendor if cards else ""
        return visible(vendor, [card.uuid for card in cards], os.environ)

    def _settled(self) -> bool:
        """Return whether it holds the card.

        Raises:
            BerthError: it was refused, stopped, or berthd is gone.
        """
        phase = self._tenancy.phase
        if isinstance(phase, Over) and phase.failure is not None:
            raise _error(phase.failure, self._path)
        return isinstance(phase, Holding)


def _error(failure: Failure, path: Path) -> BerthError:
    """Return what a script is told."""
    if failure.code == Code.NO_BERTH:
        told = nobody_there(path)
        return NoBerth(failure.message, told.hint) if failure.waited_out else told
    try:
        code = Code(failure.code)
    except ValueError:  # a newer berthd's
        code = Code.INTERNAL
    kind = LeaseStopped if code is Code.WITHDRAWN else LeaseRefused
    if failure.waited_out:
        hint = f"{failure.hint}  (wait_s says how long)" if failure.hint else ""
        return WaitExpired(code, failure.message, hint)
    return kind(code, failure.message, failure.hint)
