# What holders bring back after a restart (S6, Q4): a fresh turn, a drain under way, a stop that a
# person had ordered before.
card
chat runs 6000 min_turn=20
- [lease.queued] chat: 5.9 GiB, interactive
- [lease.granted] chat: 5.9 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
render runs 6000
- [lease.queued] render: 5.9 GiB, interactive
- [lease.granted] render: 5.9 GiB, interactive
- render is granted gpu0
- readings fast
- [lease.started] render
- [engine.ready] render
- readings slow
voice runs 6000
- [lease.queued] voice: 5.9 GiB, interactive
- [lease.granted] voice: 5.9 GiB, interactive
- voice is granted gpu0
- readings fast
- [lease.started] voice
- [engine.ready] voice
- readings slow
after 30
images asks 16000 priority=foreground wait=100
- [lease.queued] images: 15.6 GiB, foreground
- [lease.draining] chat: for images
- [lease.draining] render: for images
- chat is told: drain 1 (for images)
- render is told: drain 1 (for images)
- images waits, no. 1: chat was asked to finish; render was asked to finish; then 18.1 GiB is free and you fit
chat says heard
voice stopped
- [lease.draining] voice: stopped by a person
- [lease.kept] render: nobody waits any more
- voice is told: stop 1 (stopped by a person)
- render is told: continue 2 (nobody waits any more)
- images waits, no. 1: voice was asked to finish; chat was asked to finish; then 18.1 GiB is free and you fit
restart
read
- [card.ok]: first reading
chat attaches running
- [lease.attached] chat: as running
render attaches draining
- [lease.attached] render: as draining
- [lease.kept] render: nobody waits any more
- render is told: continue 3 (nobody waits any more)
voice attaches running
- [lease.draining] voice: stopped by a person before berthd restarted
- [lease.attached] voice: as draining
- voice is told: stop 2 (stopped by a person before berthd restarted)
images asks 16000 priority=foreground wait=100
- [lease.queued] images: 15.6 GiB, foreground
- [lease.draining] render: for images
- render is told: drain 4 (for images)
- images waits, no. 1: voice was asked to finish; render was asked to finish; then 18.1 GiB is free and you fit
status
- chat is running
- render is draining
- voice is draining
after 21
- render is woken
- voice is woken
- images waits, no. 1: voice was asked to finish and does not answer; render was asked to finish and does not answer
status
- chat is running
- render is draining
- voice is draining
