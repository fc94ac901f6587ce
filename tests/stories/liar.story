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
- images waits, no. 1: chat was asked to finish
after 4
chat says heard
chat says boundary
- readings fast
chat says released
- [lease.released] chat
- images waits, no. 1: chat has given its memory back; the card must show it free
chat uses 14000
after 8
- [lease.stuck] chat: the card still shows 13.7 GiB of it after 5s
- images waits, no. 1: chat said it gave its memory back, but the card still shows it
- readings slow
chat uses nothing
after 3
- [lease.freed] chat: 10s after its word
- [lease.granted] images: 15.6 GiB, interactive
- images is granted gpu0
- readings fast
