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
- images waits, no. 1: chat was asked to finish
chat says heard
chat says boundary
- readings fast
chat says released
- [lease.released] chat
- images waits, no. 1: chat has given its memory back; the card must show it free
chat uses 14000
after 3
chat uses nothing
after 1
- [lease.freed] chat: 3.5s after its word
- [lease.granted] images: 15.6 GiB, interactive
- images is granted gpu0
