# A holder that is told to run on, and does not say that it heard, counts as running again after 5 s;
# after a suspend it has its 5 s again (S8).
card
chat runs 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
images asks 16000
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
images withdraws
- [lease.withdrawn] images: its client is gone
- [lease.kept] chat: nobody waits any more
- chat is told: continue 2 (nobody waits any more)
status
- chat is draining
after 4
status
- chat is draining
after 2
status
- chat is running
video asks 16000
- [lease.queued] video: 15.6 GiB, interactive
- [lease.draining] chat: for video
- chat is told: drain 3 (for video)
- video waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
video withdraws
- [lease.withdrawn] video: its client is gone
- [lease.kept] chat: nobody waits any more
- chat is told: continue 4 (nobody waits any more)
after 4
suspend
- [card.unmeasured]: the machine was suspended
after 4
- [card.ok]: readings are back
status
- chat is draining
after 2
status
- chat is running
