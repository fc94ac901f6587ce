# The engine says released, but the card shows its memory for 3 s more: no grant until it is free.
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
images asks 16000
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
chat says heard
chat says boundary
- images waits, no. 1: chat is stopping; then 24.0 GiB is free and you fit
- readings fast
chat says released
- [lease.released] chat
- images waits, no. 1: chat gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
chat uses 14000
after 3
chat uses nothing
after 1
- [lease.freed] chat: 13.7 GiB back, 3.5s after its word
- [lease.granted] images: 15.6 GiB, interactive; waited 3.5s for chat
- images is granted gpu0
