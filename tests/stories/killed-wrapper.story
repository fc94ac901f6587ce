# The wrapper is killed: its tree is ended by berthd, and its memory counts until it is read free.
card
chat runs 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
images asks 14000 priority=batch
- [lease.queued] images: 13.7 GiB, batch
- images waits, no. 1: chat has a higher priority
after 2
chat gone
- [lease.released] chat: its process is gone
- images waits, no. 1: chat gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
- readings fast
chat uses 14000
after 2
chat uses nothing
after 1
- [lease.freed] chat: 13.7 GiB back, 2.5s after its word
- [lease.granted] images: 13.7 GiB, batch; waited 4.5s for chat
- images is granted gpu0
