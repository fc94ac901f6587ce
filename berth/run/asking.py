"""From asking to running: queued, granted, refused, or no berthd at all (R4)."""

from msgspec.structs import replace

from berth.errors import Exit, refusal_status
from berth.run.drain import Steps
from berth.run.messages import DropChild, LeaseGiven, Queued, Refused, StartChild
from berth.run.state import TELL_AGAIN_EVERY, Asking, Leaving, Leftovers, Over, Running, RunOptions
from berth.units import show_about, show_duration, since
from berth.visible import visible
from berth.wire import START_MARGIN
from berth.words import plain


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
    """The request waits: tell the person why, when that is news.

    On a terminal the line is written over, so every change is shown. Elsewhere a line stays: one
    for each reason, and one every 30 s.
    """
    phase = steps.run.phase
    if not isinstance(phase, Asking):
        return
    phase = replace(phase, request=event.request)
    steps.run = replace(steps.run, phase=phase)
    line = _waiting(event)
    if not event.why or line == phase.told:
        return
    on_terminal = steps.run.options.on_terminal
    again = since(phase.told_at, steps.now) >= TELL_AGAIN_EVERY
    if phase.told and not on_terminal and event.reason == phase.reason and not again:
        return
    if not phase.told:
        _tell_ask(steps, event)
    told = replace(phase, told=line, reason=event.reason, told_at=steps.now)
    steps.run = replace(steps.run, phase=told)
    steps.say(
        "queued",
        line,
        passing=True,
        request=event.request,
        position=event.position,
        why=event.why,
        eta_s=event.eta,
    )


def _tell_ask(steps: Steps, event: Queued) -> None:
    """Before the first reason: what is asked for, and for how long it waits."""
    options = steps.run.options
    if options.asks:
        of = f" of {event.cards}" if event.cards else ""
        how = f"({options.priority}, waits up to {show_duration(options.wait)})"
        steps.say("asks", f"{plain(options.name)} asks {options.asks}{of} {how}")


def _waiting(event: Queued) -> str:
    """Return why it waits, for how long that is likely, and which in line it is."""
    likely = "" if event.eta is None else f"; {show_about(event.eta)}"
    place = f" [{event.position} of {event.waiting}]" if event.waiting > 1 else ""
    return f"{plain(event.why)}{likely}{place}"


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
    if phase.told:
        steps.say("granted", f"granted after {show_duration(waited)}; starting", lease=event.lease)
    cards = tuple(card.name for card in event.cards)
    phase_now = Running(lease=event.lease, started=steps.now)
    steps.run = replace(steps.run, phase=phase_now, cards=cards)
    environment = {"BERTH_RUN": steps.run.options.mark, **_shown_cards(steps.run.options, event)}
    steps.do(StartChild(lease=event.lease, environment=environment))


def _shown_cards(options: RunOptions, event: LeaseGiven) -> dict[str, str]:
    """Return the variable that shows the command its cards only, if Berth is to set it (M3)."""
    if not options.names_cards:
        return {}
    vendor = event.cards[0].vendor if event.cards else ""
    return visible(vendor, [card.uuid for card in event.cards], options.environment_names)


def on_refused(steps: Steps, event: Refused) -> None:
    """Refused: say why, and leave with the status that says whether waiting longer would help."""
    match steps.run.phase:
        case Asking():
            steps.say(
                "refused",
                f"refused: {plain(event.message)} ({event.code})",
                refusal=True,
                code=event.code,
            )
            if event.hint:
                flag = "  (--wait says how long)" if event.waited_out else ""
                steps.say("hint", f"  {plain(event.hint)}{flag}", refusal=True)
            steps.do(DropChild())
            steps.leave(Exit.NOT_IN_TIME if event.waited_out else refusal_status(event.code))
        case Leaving(status=status):
            steps.leave(status)
        case Running() | Leftovers() | Over():
            pass
