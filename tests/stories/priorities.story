# A higher priority drains at once; a lower one waits; a job of the same priority runs to its end.
card
train runs 10000 job priority=batch
- [lease.queued] train: 9.8 GiB, batch
- [lease.granted] train: 9.8 GiB, batch
- train is granted gpu0
- readings fast
- [lease.started] train
- readings slow
chat asks 20000 priority=interactive
- [lease.queued] chat: 19.5 GiB, interactive
- [lease.draining] train: for chat
- train is told: drain 1 (for chat)
- chat waits, no. 1: train was asked to finish; then 24.0 GiB is free and you fit
after 1
train says heard
train gone
- [lease.released] train: its process is gone
- chat waits, no. 1: train gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
- readings fast
after 1
- [lease.freed] train: 9.8 GiB back, 0.5s after its word
- [lease.granted] chat: 19.5 GiB, interactive; waited 1.5s for train
- chat is granted gpu0
chat started
- [lease.started] chat
chat uses 20000
chat says ready
- [engine.ready] chat
- readings slow
batch asks 20000 priority=batch job wait=5
- [lease.queued] batch: 19.5 GiB, batch
- batch waits, no. 1: chat has a higher priority
after 6
- [lease.refused] batch: no room on gpu0 in 5s: chat has a higher priority
- batch is refused (wait_expired): no room on gpu0 in 5s: chat has a higher priority
