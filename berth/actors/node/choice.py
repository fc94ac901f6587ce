"""Which card a request goes to that takes any (Q9): where it fits now, else where it costs least.

Every card is asked what the request would cost on it. The best of what was answered within 1 s is
taken; a card that could never hold it is left out. While none of the others can be read, they are
asked again every second, for as long as the request wants to wait.
"""

from typing import Final

from msgspec.structs import replace

from berth.actors.card.messages import SeekLease, Survey
from berth.actors.node.desk import Desk, with_item
from berth.actors.node.inbox import Fit, RequestRefused, Surveyed
from berth.actors.node.state import Party, Searching
from berth.errors import Code
from berth.ids import RequestId
from berth.units import Seconds, after

SURVEY_WITHIN: Final = Seconds(1.0)


def begin(desk: Desk, request: RequestId, party: Party, seek: SeekLease) -> None:
    """Ask every card."""
    searching = Searching(seek=seek, answer_by=after(desk.now, SURVEY_WITHIN))
    _set(desk, request, replace(party, searching=searching))
    for card in desk.node.cards:
        on_card = replace(seek, cards=(card.name,))
        desk.to_card(card.name, Survey(seek=on_card))


def on_surveyed(desk: Desk, event: Surveyed) -> "RequestRefused | None":
    """Take a card's answer; the last one decides. Returns the refusal, when it fits on none."""
    party = desk.node.requests.get(event.request)
    if party is None or party.searching is None or party.searching.paused:
        return None
    answers = with_item(party.searching.answers, event.card, event)
    party = replace(party, searching=replace(party.searching, answers=answers))
    _set(desk, event.request, party)
    if len(answers) == len(desk.node.cards):
        return _decide(desk, event.request, party)
    return None


def on_tick(desk: Desk) -> "list[RequestRefused]":
    """Decide with what was answered in time, or ask again. Returns the refusals."""
    late = [
        (request, party, party.searching)
        for request, party in desk.node.requests.items()
        if party.searching is not None and desk.now >= party.searching.answer_by
    ]
    refused = []
    for request, party, searching in late:
        if searching.paused:
            begin(desk, request, party, searching.seek)
        else:
            refused.append(_decide(desk, request, party))
    return [one for one in refused if one is not None]


def _decide(desk: Desk, request: RequestId, party: Party) -> "RequestRefused | None":
    searching = party.searching
    if searching is None:
        return None
    order = [card.name for card in desk.node.cards]
    answers = sorted(
        searching.answers.values(), key=lambda one: (one.rank, one.cost, order.index(one.card))
    )
    if answers and answers[0].rank is Fit.NEVER:
        message = "; ".join(one.why for one in answers)
        return RequestRefused(request=request, code=Code.TOO_BIG, message=message)
    gives_up = after(searching.seek.arrived, searching.seek.terms.wait)
    if answers and answers[0].rank is Fit.UNREADABLE and desk.now < gives_up:
        later = Searching(
            seek=searching.seek, answer_by=after(desk.now, SURVEY_WITHIN), paused=True
        )
        _set(desk, request, replace(party, searching=later))
        return None
    card, why = (answers[0].card, answers[0].why) if answers else (order[0], "no card answered")
    seek = replace(searching.seek, cards=(card,), chosen=why, behind=party.behind)
    chosen = replace(party, searching=None, cards=(card,), sought={card: seek})
    _set(desk, request, chosen)
    desk.to_card(card, seek)
    return None


def _set(desk: Desk, request: RequestId, party: Party) -> None:
    desk.node = replace(desk.node, requests=with_item(desk.node.requests, request, party))
