# A person takes the card for ten minutes: the engine finishes, nobody else gets the card meanwhile,
# and when the time is over whoever waits is served (Q1). Over a restart of berthd the hold stays.
card
chat runs 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
after 10
me asks whole priority=hold hold_for=600
- [lease.queued] me: the whole card, hold
- [lease.draining] chat: for me
- chat is told: drain 1 (for me)
- me waits, no. 1: chat was asked to finish; then you fit
after 1
chat says heard
chat says boundary
- me waits, no. 1: chat is stopping; then you fit
- readings fast
chat says released
- [lease.released] chat
- me waits, no. 1: chat gave its memory back, and the card must show it free; then you fit
after 1
- [lease.freed] chat: 13.7 GiB back, 0.5s after its word
- [lease.granted] me: the whole card, hold; waited 1.5s for chat
- [lease.started] me
- me is granted gpu0
- readings slow
late asks 14000 wait=3600
- [lease.queued] late: 13.7 GiB, interactive
- late waits, no. 1: a person keeps the card for 9m59s (berth release ends it)
urgent asks 14000 priority=foreground wait=3600
- [lease.queued] urgent: 13.7 GiB, foreground
- urgent waits, no. 1: a person keeps the card for 9m59s (berth release ends it)
- late waits, no. 2: urgent comes first
after 300
restart
read
- [card.ok]: first reading
after 1
late asks 14000 wait=3600
- [lease.queued] late: 13.7 GiB, interactive
- late waits, no. 1: a person keeps the card for 4m58s (berth release ends it)
after 300
- [lease.released] me: its time is over
- late waits, no. 1: me gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
- readings fast
- [lease.freed] me: 0.5s after its word
- [lease.granted] late: 13.7 GiB, interactive; waited 4m59s for me
- late is granted gpu0
