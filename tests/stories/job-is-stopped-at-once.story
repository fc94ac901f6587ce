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
- chat waits, no. 1: train was asked to finish; then 24.0 GiB is free and you fit
after 6
- train is woken
- chat waits, no. 1: train was asked to finish and does not answer
after 6
- train's tree is ended, 5s grace
- chat waits, no. 1: train is stopping; then 24.0 GiB is free and you fit
- readings fast
train gone
- [lease.released] train: its process is gone
- chat waits, no. 1: train gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
after 1
- [lease.freed] train: 13.7 GiB back, 0.5s after its word
- [lease.granted] chat: 13.7 GiB, interactive; waited 12s for train
- chat is granted gpu0
