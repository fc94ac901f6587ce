# A hold without a time stays until the person releases it, and a stop ends it like any lease.
card
me asks whole priority=hold
- [lease.queued] me: the whole card, hold
- [lease.granted] me: the whole card, hold
- [lease.started] me
- me is granted gpu0
chat asks 14000 wait=3600
- [lease.queued] chat: 13.7 GiB, interactive
- chat waits, no. 1: a person keeps the card (berth release ends it)
after 600
me reclaimed
- answered bad_request: L1 is a person's hold, with nothing to kill
me released
- [lease.released] me: given back
- chat waits, no. 1: me gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
- readings fast
after 3
- [lease.freed] me: 0.5s after its word
- [lease.granted] chat: 13.7 GiB, interactive; waited 10m for me
- chat is granted gpu0
chat started
- [lease.started] chat
