"""What holds for the node whatever clients and cards do, in whatever order.

Clients ask, call, leave and come back with their keys; cards answer late, twice, out of order or
never, and are started again.
"""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from berth.actors.card.messages import (
    AttachHolder,
    Describe,
    HolderAnswered,
    HolderStarted,
    HolderWord,
    NameFreed,
    ReleaseLease,
    SeekLease,
    StopLease,
)
from berth.actors.journal.messages import ReadEvents
from berth.actors.node.inbox import CallId, CardDescribed
from berth.actors.node.messages import (
    CardRestarted,
    ClientOp,
    CloseNode,
    EventsRead,
    ForCard,
    GiveBack,
    NodeClosed,
    NodeEffect,
    Push,
    Reply,
    SayHello,
    ShowEvents,
    ShowStatus,
    Stop,
    TellStarted,
    TellWord,
    Withdraw,
)
from berth.errors import Code
from berth.ids import Attempt, CardName, LeaseId, RequestId, lease_of
from berth.lease import Order
from tests.cores.describing import card_status
from tests.cores.playing_node import GPU0, GPU1, PlayedNode, connection_of

CLIENTS = st.sampled_from(["ann", "bob", "eve"])
NAMES = st.sampled_from(["chat", "images"])
KEYS = st.sampled_from(["", "k1", "k2", "k3"])
CARDS = st.sampled_from([(), ("gpu0",), ("gpu1",), ("gpu7",)])
NEVER_GRANTED = RequestId("r0")


class NodeMachine(RuleBasedStateMachine):
    """A node under every event that it can hear."""

    def __init__(self) -> None:
        super().__init__()
        self.node = PlayedNode()
        self.seen = 0
        self.answered: Counter[tuple[bytes, str]] = Counter()
        self.sought: list[RequestId] = []
        self.calls: list[tuple[CallId, LeaseId | None]] = []
        self.asked: list[tuple[CallId, str]] = []
        self.granted: set[RequestId] = set()
        self.behind: set[RequestId] = set()

    # --- clients ----------------------------------------------------------------------------

    @rule(
        client=CLIENTS,
        name=NAMES,
        key=KEYS,
        cards=CARDS,
        exclusive=st.booleans(),
        numbered=st.booleans(),
    )
    def ask(self, client: str, name: str, **terms: Any) -> None:
        closing, before = self.node.node.closing, set(self.node.node.requests)
        self.node.asks(client, name, **terms)
        assert not closing or set(self.node.node.requests) <= before, "taken while it stops"

    @rule(client=CLIENTS, how=st.sampled_from(["refused", "gone", "granted and ended"]))
    def namesakes(self, client: str, how: str) -> None:
        """R10: two of one name; the second goes on once the first has ended, however it does."""
        if self.node.node.closing:
            return
        self.node.numbers += 1
        name, other = f"only-{self.node.numbers}", f"other-{self.node.numbers}"
        terms: dict[str, Any] = {"cards": ("gpu0",), "exclusive": True}
        first = self.node.asks(client, name, key=f"{name}-1", **terms)
        second = self.node.asks(other, name, key=f"{name}-2", **terms)
        assert self.node.node.requests[second].behind == first
        self.granted.add(first)
        if how == "refused":
            self.node.refuses(first)
        elif how == "gone":
            self.leave(client)
        else:
            self.node.grants(first)
            self.node.ends(lease_of(first))
        assert second in [one.request for one in self.node.heard(NameFreed)]

    @rule(client=CLIENTS, name=NAMES, key=KEYS, cards=CARDS, lease=st.sampled_from([None, "L1"]))
    def attach(self, client: str, name: str, lease: str | None, **terms: Any) -> None:
        self.node.attaches(client, name, lease=lease, **terms)

    @rule(client=CLIENTS, data=st.data())
    def speak(self, client: str, data: st.DataObject) -> None:
        """A client says something of a lease, its own or another's or none."""
        lease = data.draw(st.sampled_from([*self.node.node.leases, LeaseId("L0")]))
        words: tuple[ClientOp, ...] = (
            TellStarted(lease=lease, members=frozenset(), scope=None),
            TellWord(lease=lease, attempt=Attempt(1), word=HolderWord.HEARD, why=""),
            GiveBack(lease=lease),
            Stop(target=lease, at_once=False),
        )
        self.node.calls(client, data.draw(st.sampled_from(words)))

    @rule(client=CLIENTS, name=NAMES, at_once=st.booleans())
    def stop(self, client: str, name: str, at_once: bool) -> None:
        self.node.calls(client, Stop(target=name, at_once=at_once))

    @rule(client=CLIENTS, data=st.data())
    def withdraw(self, client: str, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from([*self.node.node.requests, NEVER_GRANTED]))
        party = self.node.node.requests.get(request)
        message_id = self.node.calls(client, Withdraw(request=request))
        mine = party is not None and party.connection == connection_of(client)
        assert self.node.code(message_id) == (
            None if mine else Code.NOT_FOUND if party is None else Code.NOT_YOURS
        )
        assert (request in self.node.node.requests) == (party is not None and not mine)

    @rule(client=CLIENTS)
    def look(self, client: str) -> None:
        self.node.calls(client, ShowStatus())
        self.node.calls(client, ShowEvents(after_seq=None, within=None, limit=1))
        self.node.calls(client, SayHello())

    @rule(client=CLIENTS)
    def leave(self, client: str) -> None:
        """S5: a waiter that is gone is withdrawn; a holder that is gone stays."""
        held = set(self.node.node.leases)
        self.node.leaves(client)
        parties = [*self.node.node.requests.values(), *self.node.node.leases.values()]
        assert all(party.connection != connection_of(client) for party in parties)
        assert set(self.node.node.leases) == held

    @rule(client=CLIENTS, name=NAMES, good=st.booleans())
    def attach_and_leave(self, client: str, name: str, good: bool) -> None:
        """S6: its card takes a holder in also when its line broke; the next attach finds it."""
        self.node.attaches(client, name, cards=("gpu0",), key=f"own-{client}")
        call = self.node.last_call
        asked = [one for one in self.node.heard(AttachHolder) if one.call == call]
        self.node.leaves(client)
        if asked and good:
            lease = asked[0].lease or lease_of(asked[0].request)
            self.node.is_done(call, lease)
            assert lease in self.node.node.leases
            self.node.attaches(client, name, cards=("gpu0",), key=f"own-{client}")
            again = [one for one in self.node.heard(AttachHolder) if one.call != call][-1]
            assert again.lease == lease, "a known holder is given a second lease"

    # --- cards ------------------------------------------------------------------------------

    @precondition(lambda self: set(self.sought) - self.granted)
    @rule(data=st.data())
    def grant(self, data: st.DataObject) -> None:
        """A card grants a request, known or withdrawn meanwhile; once, as a card does."""
        request = data.draw(st.sampled_from(sorted(set(self.sought) - self.granted)))
        self.granted.add(request)
        waits = request in self.node.node.requests
        card = data.draw(st.sampled_from([GPU0, GPU1]))
        lease = self.node.grants(request, card)
        given_back = [one.lease for one in self.node.heard(ReleaseLease, card.name) if one.unseen]
        assert (lease in given_back) == (not waits), "S6: nobody holds what nobody has seen"

    @precondition(lambda self: self.sought)
    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(self.sought))
        self.granted.add(request)  # what was refused is not granted any more
        self.node.refuses(request, Code.WAIT_EXPIRED)

    @precondition(lambda self: self.node.node.requests)
    @rule(data=st.data())
    def stand(self, data: st.DataObject) -> None:
        self.node.stands(data.draw(st.sampled_from([*self.node.node.requests])))

    @precondition(lambda self: self.sought)
    @rule(data=st.data(), order=st.sampled_from(list(Order)))
    def order(self, data: st.DataObject, order: Order) -> None:
        lease = lease_of(data.draw(st.sampled_from(self.sought)))
        party = self.node.node.leases.get(lease)
        before = len(self.node.said)
        self.node.orders(lease, order)
        told = [one.connection for one in self.node.said[before:] if isinstance(one, Push)]
        here = party is not None and party.connection is not None
        assert bool(told) == here

    @precondition(lambda self: self.sought)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.node.ends(lease_of(data.draw(st.sampled_from(self.sought))))

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), good=st.booleans())
    def answer(self, data: st.DataObject, good: bool) -> None:
        """A call is answered: in any order, late, twice."""
        call, lease = data.draw(st.sampled_from(self.calls))
        if good:
            self.node.is_done(call, lease)
        else:
            self.node.fails(call)
        self.node.hear(EventsRead(call=call, events=()))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def describe(self, data: st.DataObject) -> None:
        call, card = data.draw(st.sampled_from(self.asked))
        status = card_status(card, 0)
        self.node.hear(CardDescribed(call=call, card=CardName(card), status=status))

    @rule(card=st.sampled_from(["gpu0", "gpu1"]))
    def restart_card(self, card: str) -> None:
        """3.7: a card that is started again is asked again for everybody who waits for it."""
        node = self.node.node
        waiting = {r for r, party in node.requests.items() if card in party.sought}
        said = self.node.hear(CardRestarted(card=CardName(card)))
        again = {
            effect.message.request
            for effect in said
            if isinstance(effect, ForCard) and isinstance(effect.message, SeekLease)
        }
        assert again == waiting

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.5, 12.0]))
    def pass_time(self, seconds: float) -> None:
        self.node.later(seconds)

    @precondition(lambda self: self.node.node.last_number > 2)
    @rule()
    def close(self) -> None:
        """Who comes after it is refused, but for one who asks again by its key."""
        self.node.hear(CloseNode())
        self.ask("late", "chat", key="late", cards=("gpu0",), exclusive=False, numbered=False)
        assert not any(party.key == "late" for party in self.node.node.requests.values())

    # --- what holds -------------------------------------------------------------------------

    @invariant()
    def every_message_has_at_most_one_end(self) -> None:
        for effect in self.news():
            if isinstance(effect, Reply):
                message = (effect.connection, effect.message_id)
                assert not self.answered[message], f"{message} was answered after its end"
                self.answered[message] += effect.last
            elif isinstance(effect, ReadEvents):
                self.calls.append((effect.call, None))
            elif isinstance(effect, ForCard):
                self.note(effect)
            else:
                assert isinstance(effect, Push | NodeClosed)

    def news(self) -> list[NodeEffect]:
        said, self.seen = self.node.said[self.seen :], len(self.node.said)
        return said

    def note(self, effect: ForCard) -> None:
        """Note what a card was asked, to be answered in any order."""
        assert effect.card in {"gpu0", "gpu1"}
        match effect.message:
            case SeekLease(request=request, again=again):
                assert again or request not in self.sought, f"{request} was sought twice"
                if not again:
                    self.sought.append(request)
            case Describe(call=call):
                self.asked.append((call, effect.card))
            case AttachHolder(call=call, lease=lease, request=request):
                self.calls.append((call, lease or lease_of(request)))
            case HolderStarted() | HolderAnswered() | ReleaseLease() | StopLease() as told:
                self.calls.append((told.call, told.lease))
            case _:
                pass

    @invariant()
    def every_request_is_at_one_place(self) -> None:
        node = self.node.node
        assert not {lease_of(request) for request in node.requests} & set(node.leases)
        assert set(node.requests) <= set(self.sought)

    @invariant()
    def no_key_is_at_two_places(self) -> None:
        """S6: a key that is sent again finds its request; there are never two of it."""
        keys = Counter(party.key for party in self.node.node.requests.values() if party.key)
        assert all(count == 1 for count in keys.values()), keys

    @invariant()
    def nobody_waits_behind_what_is_gone(self) -> None:
        """R10: who is behind somebody is behind a request or a lease that is still there."""
        node = self.node.node
        for party in node.requests.values():
            assert not party.behind or party.behind in {*node.requests, *node.leases}

    @invariant()
    def who_need_not_wait_for_a_name_any_more_is_told_to_its_card(self) -> None:
        """R10: the card holds it back until it hears that the name is free."""
        requests = self.node.node.requests
        freed = {r for r, party in requests.items() if r in self.behind and not party.behind}
        told = {
            one.request for card in ("gpu0", "gpu1") for one in self.node.heard(NameFreed, card)
        }
        assert freed <= told
        self.behind |= {r for r, party in requests.items() if party.behind}

    @invariant()
    def calls_and_gatherings_never_outlive_their_deadline(self) -> None:
        node, now = self.node.node, self.node.now
        assert all(calling.answer_by > now for calling in node.calls.values())
        assert node.gathering is None or node.gathering.answer_by > now

    @invariant()
    def everybody_who_is_there_was_told_within_five_seconds(self) -> None:
        node, now = self.node.node, self.node.now
        for party in (*node.requests.values(), *node.leases.values()):
            if party.connection is not None:
                assert now - node.told.get(party.connection, now) < 5.0 + 0.5

    def teardown(self) -> None:
        """Once cards are silent for ever, every call and every status has had its answer."""
        self.node.later(11)  # whether a grant still holds is asked twice
        assert not self.node.node.calls
        assert not self.node.node.gathering
        self.every_message_has_at_most_one_end()


NodeMachine.TestCase.settings = settings(
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestNodeMachine = NodeMachine.TestCase
