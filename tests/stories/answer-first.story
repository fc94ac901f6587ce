# An engine that has just been started answers a request before one of its own priority may drain
# it (Q11); a higher priority does not wait for that.
card
one asks 20000
- [lease.queued] one: 19.5 GiB, interactive
- [lease.granted] one: 19.5 GiB, interactive
- one is granted gpu0
- readings fast
one started
- [lease.started] one
one uses 20000
two asks 20000
- [lease.queued] two: 19.5 GiB, interactive
- two waits, no. 1: one has only just started and answers a request first
after 20
one says ready
- [engine.ready] one
- readings slow
after 2
one says served
- [lease.draining] one: for two
- one is told: drain 1 (for two)
- two waits, no. 1: one was asked to finish; then 24.0 GiB is free and you fit
after 1
urgent asks 20000 priority=foreground
- [lease.queued] urgent: 19.5 GiB, foreground
- urgent waits, no. 1: one was asked to finish; then 24.0 GiB is free and you fit
- two waits, no. 2: urgent comes first
