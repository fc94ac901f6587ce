# A script's lease has no wrapper: it is asked, and never signalled for a drain (S5).
card
note runs 14000 script drain_wait=10
- [lease.queued] note: 13.7 GiB, interactive
- [lease.granted] note: 13.7 GiB, interactive
- note is granted gpu0
- readings fast
- [lease.started] note
- readings slow
after 5
chat asks 14000 priority=foreground wait=40
- [lease.queued] chat: 13.7 GiB, foreground
- [lease.draining] note: for chat
- note is told: drain 1 (for chat)
- chat waits, no. 1: note was asked to finish; then 24.0 GiB is free and you fit
after 20
- note is woken
- chat waits, no. 1: note was asked to finish and does not answer
note says heard
- chat waits, no. 1: note was asked to finish; then 24.0 GiB is free and you fit
note says released
- [lease.released] note
- chat waits, no. 1: note gave its memory back, and the card must show it free; then 24.0 GiB is free and you fit
- readings fast
after 1
- [lease.freed] note: 13.7 GiB back, 0.5s after its word
- [lease.granted] chat: 13.7 GiB, foreground; waited 20s for note
- chat is granted gpu0
