# A small waiter passes a big one only when the big one still fits beside it afterwards (Q7).
card total=48436
train runs 20992 job pinned priority=batch
- [lease.queued] train: 20.5 GiB, batch
- [lease.granted] train: 20.5 GiB, batch
- train is granted gpu0
- readings fast
- [lease.started] train
- readings slow
gemma asks 36864 priority=batch job
- [lease.queued] gemma: 36.0 GiB, batch
- gemma waits, no. 1: train is pinned
reader asks 12000 priority=batch job
- [lease.queued] reader: 11.7 GiB, batch
- reader waits, no. 2: 26.8 GiB is free now, but then gemma (36.0) would not fit
tiny asks 8000 priority=batch job
- [lease.queued] tiny: 7.8 GiB, batch
- [lease.granted] tiny: 7.8 GiB, batch
- tiny is granted gpu0
- readings fast
