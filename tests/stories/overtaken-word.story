# A holder's word to an order that another has overtaken changes nothing: the last order is unheard,
# and its holder is woken (H6).
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
video asks 16000 wait=100
- [lease.queued] video: 15.6 GiB, interactive
- [lease.draining] chat: for video
- chat is told: drain 3 (for video)
- video waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
chat says heard 1
after 6
- chat is woken
- video waits, no. 1: chat was asked to finish and does not answer
chat says heard 3
- video waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
after 6
