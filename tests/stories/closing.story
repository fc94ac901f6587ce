# berthd is told to stop: who waits is refused with a reason, also who comes now; holders run on.
card
chat runs 20000
- [lease.queued] chat: 19.5 GiB, interactive
- [lease.granted] chat: 19.5 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
images asks 16000 wait=60
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
close
- [lease.refused] images: berthd is stopping; ask again when it is back
- [lease.kept] chat: nobody waits any more
- images is refused (shutting_down): berthd is stopping; ask again when it is back
- chat is told: continue 2 (nobody waits any more)
late asks 1000
- [lease.queued] late: 1.0 GiB, interactive
- [lease.refused] late: berthd is stopping; ask again when it is back
- late is refused (shutting_down): berthd is stopping; ask again when it is back
chat says released
- [lease.released] chat
- readings fast
chat uses nothing
after 1
- [lease.freed] chat: 19.5 GiB back, 0.5s after its word
- readings slow
