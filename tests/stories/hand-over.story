# Two engines of one priority: the newcomer gets the card at the holder's boundary (Q2), and only
# once a reading taken after the release shows the memory free (H1, B3).
card reserved=421
chat runs 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
after 30
images asks 16000
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 23.6 GiB is free and you fit
after 1
chat says heard
after 2
chat says boundary
- images waits, no. 1: chat is stopping; then 23.6 GiB is free and you fit
- readings fast
chat says released
- [lease.released] chat
- images waits, no. 1: chat gave its memory back, and the card must show it free; then 23.6 GiB is free and you fit
after 1
- [lease.freed] chat: 13.7 GiB back, 0.5s after its word
- [lease.granted] images: 15.6 GiB, interactive; waited 3.5s for chat
- images is granted gpu0
images started
- [lease.started] images
images uses 16000
images says ready
- [engine.ready] images
- readings slow
after 5
images gives-back
- [lease.released] images: given back
- readings fast
images uses nothing
after 5
- [lease.freed] images: 15.6 GiB back, 0.5s after its word
- readings slow
