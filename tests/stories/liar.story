# The engine says released and keeps the memory: stuck after the release grace, still counted, and
# freed only when the card shows it.
card release_grace=5
chat runs 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
images asks 16000
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
after 4
chat says heard
chat says boundary
- images waits, no. 1: chat is stopping; then 24.0 GiB is free and you fit
- readings fast
chat says released
- [lease.released] chat
- images waits, no. 1: chat gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
chat uses 14000
after 8
- [lease.stuck] chat: card still shows 13.7 GiB after 5s
- images waits, no. 1: chat holds 13.7 GiB that it said it gave back; the card decides
- readings slow
chat uses nothing
after 3
- [lease.freed] chat: 13.7 GiB back, 10s after its word
- [lease.granted] images: 15.6 GiB, interactive
- images is granted gpu0
- readings fast
