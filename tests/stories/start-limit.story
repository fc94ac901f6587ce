# A start that takes longer than its --start-limit counts as ready (Q11): it may be asked like any
# other engine, once it has had its 3 s to answer somebody.
card
chat asks 14000 start_limit=10
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
chat started
- [lease.started] chat
chat uses 14000
images asks 16000 wait=60
- [lease.queued] images: 15.6 GiB, interactive
- images waits, no. 1: chat has only just started and answers a request first
after 9
after 5
- readings slow
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
