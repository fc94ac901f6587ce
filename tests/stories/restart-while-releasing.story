# What was given back before a restart: the card must show it free, and nobody has to come back for
# it (B3).
card
chat runs 10000
- [lease.queued] chat: 9.8 GiB, interactive
- [lease.granted] chat: 9.8 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
chat gives-back
- [lease.released] chat: given back
- readings fast
restart
read
- [card.ok]: first reading
- readings fast
late asks 20000 wait=60
- [lease.queued] late: 19.5 GiB, interactive
- late waits, no. 1: chat gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
chat uses nothing
after 1
- [lease.freed] chat: 0.5s after its word
- [lease.granted] late: 19.5 GiB, interactive; waited 0.5s for chat
- late is granted gpu0
