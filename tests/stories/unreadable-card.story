# A card that cannot be read grants nothing; a waiter is told why, and refused with that reason.
card
chat runs 10000
- [lease.queued] chat: 9.8 GiB, interactive
- [lease.granted] chat: 9.8 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
unreadable lost
- [card.lost]: lost
images asks 4000 wait=5
- [lease.queued] images: 3.9 GiB, interactive
- images waits, no. 1: gpu0 cannot be read, so nothing is granted on it
after 6
- [lease.refused] images: no room on gpu0 in 5s: gpu0 cannot be read, so nothing is granted on it
- images is refused (unmeasured): no room on gpu0 in 5s: gpu0 cannot be read, so nothing is granted on it
images asks 4000 wait=60
- [lease.queued] images: 3.9 GiB, interactive
- images waits, no. 1: gpu0 cannot be read, so nothing is granted on it
readable
- [card.ok]: readings are back
- [lease.granted] images: 3.9 GiB, interactive
- images is granted gpu0
- readings fast
