# The machine is suspended while a holder drains and a waiter waits (S8). What was read before is
# no ground for a grant any more; who had so long to do something has it whole again; the wait,
# which stood still with the clock, goes on.
card
chat runs 14000 drain_wait=20
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
images asks 16000 wait=100
- [lease.queued] images: 15.6 GiB, interactive
- [lease.draining] chat: for images
- chat is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
chat says heard
after 50
suspend
- [card.unmeasured]: the machine was suspended
- images waits, no. 1: gpu0 cannot be read, so nothing is granted on it: the machine was suspended
small asks 2000 wait=10
- [lease.queued] small: 2.0 GiB, interactive
- small waits, no. 2: gpu0 cannot be read, so nothing is granted on it: the machine was suspended
read      # taken in the very moment of waking: it may show the card as it was before
after 1
small withdraws
- [lease.withdrawn] small: its client is gone
# chat had 75 s to reach its boundary and end, 25 s were left; it has 75 s again, images 49 s
after 48
- [card.ok]: readings are back
- images waits, no. 1: chat was asked to finish; then 24.0 GiB is free and you fit
after 1
- [lease.refused] images: no room on gpu0 in 1m40s: chat was asked to finish
- [lease.kept] chat: nobody waits any more
- images is refused (wait_expired): no room on gpu0 in 1m40s: chat was asked to finish
- chat is told: continue 2 (nobody waits any more)
