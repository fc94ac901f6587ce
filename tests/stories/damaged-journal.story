# The journal could not be read at the start: who held the card may still hold it (S6). Nothing is
# granted for 10 s, also though nobody is known who could come back.
card
chat runs 10000
- [lease.queued] chat: 9.8 GiB, interactive
- [lease.granted] chat: 9.8 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
restart damaged
chat uses nothing
read
- [card.ok]: first reading
late asks 20000 wait=60
- [lease.queued] late: 19.5 GiB, interactive
- late waits, no. 1: berthd has just started and waits for 10s for the holders it knows
after 9
after 2
- [lease.granted] late: 19.5 GiB, interactive
- late is granted gpu0
- readings fast
