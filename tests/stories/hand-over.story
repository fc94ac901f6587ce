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
- images waits, no. 1: chat was asked to finish
after 1
chat says heard
after 2
chat says boundary
- readings fast
chat says released
- [lease.released] chat
- images waits, no. 1: chat has given its memory back; the card must show it free
after 1
- [lease.freed] chat: 0.5s after its word
- [lease.granted] images: 15.6 GiB, interactive
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
- [lease.freed] images: 0.5s after its word
- readings slow
