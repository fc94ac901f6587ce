# A stopped wrapper: not heard in 5 s, woken, and when the drain wait has passed in silence its tree
# is ended by berthd (H6).
card
chat runs 14000 drain_wait=20 grace=2
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
after 5
images asks 16000
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
after 6
- chat is woken
- images waits, no. 1: chat was asked to finish and does not answer
after 20
- chat's tree is ended, 2s grace
- images waits, no. 1: chat is stopping; then 24.0 GiB is free and you fit
- readings fast
after 3
chat gone
- [lease.released] chat: its process is gone
- images waits, no. 1: chat gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
after 1
- [lease.freed] chat: 13.7 GiB back, 0.5s after its word
- [lease.granted] images: 15.6 GiB, interactive; waited 29s for chat
- images is granted gpu0
