# The journal cannot be written for a while (S6): nothing is granted, and who waits is told why.
# What was granted before is drained and given back all the same.
card
chat runs 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
job asks 4000 wait=30 priority=batch job
- [lease.queued] job: 3.9 GiB, batch
- [lease.granted] job: 3.9 GiB, batch
- job is granted gpu0
- readings fast
job started
- [lease.started] job
- readings slow
job uses 4000
job says ready
after 2
journal lost
images asks 16000
- [lease.queued] images: 15.6 GiB, interactive
- images waits, no. 1: berthd cannot write its journal, so nothing is granted
chat gives-back
- [lease.released] chat: given back
- readings fast
chat uses nothing
after 1
- [lease.freed] chat: 13.7 GiB back, 0.5s after its word
- readings slow
job says released
- [lease.released] job
- readings fast
late asks 4000 wait=3
- [lease.queued] late: 3.9 GiB, interactive
- late waits, no. 2: berthd cannot write its journal, so nothing is granted
after 4
- [lease.freed] job: 3.9 GiB back, 0.5s after its word
- readings slow
- [lease.refused] late: no room on gpu0 in 3s: berthd cannot write its journal, so nothing is granted
- late is refused (no_journal): no room on gpu0 in 3s: berthd cannot write its journal, so nothing is granted
journal writable
- [lease.granted] images: 15.6 GiB, interactive
- images is granted gpu0
- readings fast
after 1
