# A grant that nobody starts is taken back after 30 s (S6).
card
chat asks 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
after 31
- chat is woken
- [lease.draining] chat: it was not started in time
- chat is told: stop 1, at once (it was not started in time)
- chat's tree is ended, 0s grace
