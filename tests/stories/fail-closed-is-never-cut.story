# An engine that must never be cut is waited for, however long it is silent.
card
chat runs 14000 drain_wait=10 fail_closed
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
after 5
images asks 16000 wait=60
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
after 59
- chat is woken
- images waits, no. 1: chat was asked to finish and does not answer
after 2
- [lease.refused] images: no room on gpu0 in 1m: chat was asked to finish and does not answer
- [lease.kept] chat: nobody waits any more
- images is refused (wait_expired): no room on gpu0 in 1m: chat was asked to finish and does not answer
- chat is told: continue 2 (nobody waits any more)
