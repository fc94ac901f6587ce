# A lease is stuck; a person gives it up. Its tree is killed and it is closed, but nothing is freed
# by that: what the card still shows is taken until a reading shows it gone (H4).
card release_grace=5
chat runs 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
after 5
chat reclaimed
- answered bad_request: chat is at work, and was not asked to give anything back
images asks 16000 wait=3600
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
after 1
chat says heard
chat says boundary
- images waits, no. 1: chat is stopping; then 24.0 GiB is free and you fit
- readings fast
chat gives-back
- [lease.released] chat: given back
- images waits, no. 1: chat gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
after 8
- [lease.stuck] chat: card still shows 13.7 GiB after 5s
- images waits, no. 1: chat holds 13.7 GiB that it said it gave back; the card decides
- readings slow
chat reclaimed
- [lease.reclaimed] chat: given up by a person; what was left of it was killed
- chat's tree is killed
- images waits, no. 1: gpu0 shows memory in use that belongs to no process
after 4
- [stowaway.seen] chat: 13.7 GiB, pid 101
- images waits, no. 1: chat uses 13.7 GiB without a lease
chat uses nothing
unexplained 14000
after 4
- [stowaway.gone] chat
- images waits, no. 1: gpu0 shows 13.7 GiB in use that belongs to no process
unexplained 0
after 4
- [lease.granted] images: 15.6 GiB, interactive
- images is granted gpu0
- readings fast
