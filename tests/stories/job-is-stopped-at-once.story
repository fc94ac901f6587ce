# A job has no boundary: for a higher priority it is stopped at once; not heard, berthd ends it.
card
train runs 14000 job priority=batch grace=5
- [lease.queued] train: 13.7 GiB, batch
- [lease.granted] train: 13.7 GiB, batch
- train is granted gpu0
- readings fast
- [lease.started] train
- readings slow
chat asks 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.draining] train: for chat
- train is told: drain 1 (for chat)
- chat waits, no. 1: train was asked to finish
after 6
- train is woken
after 6
- train's tree is ended, 5s grace
- readings fast
train gone
- [lease.released] train: its process is gone
- chat waits, no. 1: train has given its memory back; the card must show it free
after 1
- [lease.freed] train: 0.5s after its word
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
