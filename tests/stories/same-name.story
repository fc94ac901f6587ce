# A second run of a name waits for the first one's end and never drains it (R10).
card
chat runs 8000 exclusive
- [lease.queued] chat: 7.8 GiB, interactive
- [lease.granted] chat: 7.8 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
again asks 8000 behind=L1 wait=5
- [lease.queued] again: 7.8 GiB, interactive
- again waits, no. 1: again is still there, and the name is one lease at a time
after 6
- [lease.refused] again: no room on gpu0 in 5s: again is still there, and the name is one lease at a time
- again is refused (wait_expired): no room on gpu0 in 5s: again is still there, and the name is one lease at a time
