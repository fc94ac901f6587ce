# A person's stop goes on whether or not anybody waits, and `--now` skips the boundary.
card
chat runs 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
chat stopped
- [lease.draining] chat: stopped by a person
- chat is told: stop 1 (stopped by a person)
chat says heard
chat stopped now
- [lease.draining] chat: stopped by a person
- chat is told: stop 2, at once (stopped by a person)
chat says heard
chat says released
- [lease.released] chat
- readings fast
after 1
- [lease.freed] chat: 13.7 GiB back, 0.5s after its word
- readings slow
