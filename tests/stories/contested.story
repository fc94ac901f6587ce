# Something loads beside a grant: told once, with who it was; nobody else is granted.
card
chat runs 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
chrome uses 12000
read
- [stowaway.seen] chrome: 11.7 GiB, pid 900
read
late asks 1000 wait=2
- [lease.queued] late: 1.0 GiB, interactive
- [lease.draining] chat: for late
- chat is told: drain 1 (for late)
- late waits, no. 1: chat was asked to finish; then 12.3 GiB is free and you fit
after 3
- [lease.contested] chat: chrome took 11.7 GiB, pid 900, beside its grant
- [lease.refused] late: no room on gpu0 in 2s: chat was asked to finish
- [lease.kept] chat: nobody waits any more
- late is refused (wait_expired): no room on gpu0 in 2s: chat was asked to finish
- chat is told: continue 2 (nobody waits any more)
