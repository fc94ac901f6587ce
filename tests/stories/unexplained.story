# Memory that no process holds is taken, and nobody's (B2): a waiter asks a holder to make up for it.
# It goes, and the holder, which is still before its boundary, is told to run on.
card
chat runs 8000
- [lease.queued] chat: 7.8 GiB, interactive
- [lease.granted] chat: 7.8 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
unexplained 10000
read
images asks 8000 wait=60
- [lease.queued] images: 7.8 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 14.2 GiB is free and you fit
chat says heard
unexplained 0
read
- [lease.granted] images: 7.8 GiB, interactive; waited 0s for chat
- [lease.kept] chat: nobody waits any more
- images is granted gpu0
- chat is told: continue 2 (nobody waits any more)
- readings fast
images started
- [lease.started] images
images uses 8000
images says ready
- [engine.ready] images
- readings slow
images says released
- [lease.released] images
- readings fast
after 1
- [lease.freed] images: 0.5s after its word
- readings slow
# What a released lease left without a process counts as its own until it goes (B3).
unexplained 4000
chat gives-back
- [lease.released] chat: given back
- readings fast
chat uses nothing
after 1
all asks whole wait=100
- [lease.queued] all: the whole card, interactive
- all waits, no. 1: chat gave its memory back, and the card must show it free; then you fit
after 35
- [lease.stuck] chat: card still shows 0.0 GiB after 30s
- all waits, no. 1: chat holds 0.0 GiB that it said it gave back; the card decides
- readings slow
unexplained 0
read
- [lease.freed] chat: 7.8 GiB back, 36s after its word
- [lease.granted] all: the whole card, interactive
- all is granted gpu0
- readings fast
