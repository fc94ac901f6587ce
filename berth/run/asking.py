"""From asking to running: queued, granted, refused, or no berthd at all (R4)."""

from typing import Final

from msgspec.structs import replace

from berth.errors import Exit
from berth.run.drain import Steps
from berth.run.messages import DropChild, LeaseGiven, Queued, Refused, StartChild
from berth.run.state import Asking, Leaving, Leftovers, Over, Running, RunOptions
from berth.units import Seconds, show_duration, since

START_MARGIN: Final = Seconds(1.0)
"""How long before a grant is taken back it is not started any more."""


def on_away_too_long(steps: Steps) -> None:
    """No berthd answers a request that it never heard of: run without a lease, or refuse (R4)."""
    options = steps.run.options
    if options.fail_closed:
        steps.say(
            "refused",
            "berthd does not answer, and --fail-closed runs nothing without it",
            refusal=True,
        )
        steps.do(DropChild())
        steps.leave(Exit.UNAVAILABLE)
        return
    steps.say(
        "unprotected",
        "berthd does not answer; running without a lease (attach follows)",
        refusal=True,
    )
    steps.run = replace(steps.run, phase=Running(lease=None, started=steps.now))
    steps.do(StartChild(lease=None, environment={"BERTH_RUN": options.mark}))


def on_waited_in_vain(steps: Steps) -> None:
    """The wait is over, and berthd is away: nobody else can say so."""
    waited = show_duration(steps.run.options.wait)
    steps.say("refused", f"not granted in {waited}; berthd does not answer", refusal=True)
    steps.do(DropChild())
    steps.leave(Exit.NOT_IN_TIME)


def on_queued(steps: Steps, event: Queued) -> None:
    """The request waits: tell the person, when the reason is news."""
    phase = steps.run.phase
    if not isinstance(phase, Asking):
        return
    news = bool(event.why) and event.why != phase.why
    steps.run = replace(steps.run, phase=replace(phase, request=event.request, why=event.why))
    if news:
        steps.say(
            "queued",
            f"waiting for {event.card or 'a card'}, no. {event.position}: {event.why}",
            request=event.request,
            position=event.position,
            why=event.why,
        )


def on_given(steps: Steps, event: LeaseGiven) -> None:
    """Granted: let the waiting child execute the command."""
    phase = steps.run.phase
    if not isinstance(phase, Asking):
        return
    if event.start_by is not None and steps.now >= event.start_by - START_MARGIN:
        # This wrapper was stopped for so long that the card was given to somebody else.
        steps.say("refused", "granted, but not started in time; ask again", refusal=True)
        steps.do(DropChild())
        steps.leave(Exit.NOT_IN_TIME)
        return
    waited = since(phase.since, steps.now)
    if phase.why:
        steps.say("granted", f"granted after {show_duration(waited)}; starting", lease=event.lease)
    cards = tuple(card.name for card in event.cards)
    phase_now = Running(lease=event.lease, started=steps.now)
    steps.run = replace(steps.run, phase=phase_now, cards=cards)
    environment = {"BERTH_RUN": steps.run.options.mark, **_shown_cards(steps.run.options, event)}
    steps.do(StartChild(lease=event.lease, environment=environment))


def _shown_cards(options: RunOptions, event: LeaseGiven) -> dict[str, str]:
    """Return the variable that shows the command its cards only, if Berth is to set it (M3)."""
    vendor = event.cards[0].vendor if event.cards else ""
    variable = "ROCR_VISIBLE_DEVICES" if vendor == "amd" else "CUDA_VISIBLE_DEVICES"
    uuids = [card.uuid for card in event.cards]
    if not options.names_cards or variable in options.environment_names or not all(uuids):
        return {}
    return {variable: ",".join(uuids)}


def on_refused(steps: Steps, event: Refused) -> None:
    """Refused: say why, and leave with the status that says whether waiting longer would help."""
    match steps.run.phase:
        case Asking():
            steps.say(
                "refused", f"refused: {event.message} ({event.code})", refusal=True, code=event.code
            )
            if event.hint:
                steps.say("hint", f"  {event.hint}", refusal=True)
            steps.do(DropChild())
            steps.leave(Exit.NOT_IN_TIME if event.waited_out else Exit.REFUSED)
        case Leaving(status=status):
            steps.leave(status)
        case Running() | Leftovers() | Over():
            pass
