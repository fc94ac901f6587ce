# The waiter leaves before the boundary: the holder is told to run on (Q3).
card
chat runs 14000
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
chat says heard
images withdraws
- [lease.withdrawn] images: its client is gone
- [lease.kept] chat: nobody waits any more
- chat is told: continue 2 (nobody waits any more)
chat says heard
after 6
# ... but past its boundary the drain completes.
images asks 16000
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 3 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
chat says heard
chat says boundary
- images waits, no. 1: chat is stopping; then 24.0 GiB is free and you fit
- readings fast
images withdraws
- [lease.withdrawn] images: its client is gone
chat says released
- [lease.released] chat
after 1
- [lease.freed] chat: 13.7 GiB back, 0.5s after its word
- readings slow
