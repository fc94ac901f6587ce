# berthd is killed while two engines hold leases. Nothing is granted until both came back or are
# gone; one that is silent but alive counts on as detached (S6).
card
chat runs 10000
- [lease.queued] chat: 9.8 GiB, interactive
- [lease.granted] chat: 9.8 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
images runs 10000
- [lease.queued] images: 9.8 GiB, interactive
- [lease.granted] images: 9.8 GiB, interactive
- images is granted gpu0
- readings fast
- [lease.started] images
- [engine.ready] images
- readings slow
restart
read
- [card.ok]: first reading
late asks 4000
- [lease.queued] late: 3.9 GiB, interactive
- late waits, no. 1: berthd has just started and waits for 10s for the holders it knows
chat attaches running
- [lease.attached] chat: as running
after 5
images attaches running
- [lease.attached] images: as running
- [lease.granted] late: 3.9 GiB, interactive
- late is granted gpu0
- readings fast
after 1
restart
read
- [card.ok]: first reading
chat attaches running
- [lease.attached] chat: as running
after 9
after 2
