# A pinned holder and one inside its turn are left alone by engines; a person's hold drains both.
card
chat runs 8000 pinned
- [lease.queued] chat: 7.8 GiB, interactive
- [lease.granted] chat: 7.8 GiB, interactive
- chat is granted gpu0
- readings fast
- [lease.started] chat
- [engine.ready] chat
- readings slow
images runs 8000 min_turn=60
- [lease.queued] images: 7.8 GiB, interactive
- [lease.granted] images: 7.8 GiB, interactive
- images is granted gpu0
- readings fast
- [lease.started] images
- [engine.ready] images
- readings slow
after 5
big asks 20000 priority=foreground wait=10
- [lease.queued] big: 19.5 GiB, foreground
- big waits, no. 1: chat is pinned; images keeps its turn for 55s
after 11
- [lease.refused] big: no room on gpu0 in 10s: chat is pinned; images keeps its turn for 45s
- big is refused (pinned): no room on gpu0 in 10s: chat is pinned; images keeps its turn for 45s
me asks whole priority=hold
- [lease.queued] me: the whole card, hold
- [lease.draining] chat: for me
- [lease.draining] images: for me
- chat is told: drain 1 (for me)
- images is told: drain 1 (for me)
- me waits, no. 1: chat was asked to finish; images was asked to finish; then you fit
chat says heard
images says heard
chat says boundary
- me waits, no. 1: chat is stopping; images was asked to finish; then you fit
- readings fast
images says boundary
- me waits, no. 1: chat is stopping; images is stopping; then you fit
chat says released
- [lease.released] chat
- me waits, no. 1: chat gave its memory back, and the card must show it free; images is stopping; then you fit
images says released
- [lease.released] images
- me waits, no. 1: chat gave its memory back, and the card must show it free; images gave its memory back, and the card must show it free; then you fit
after 1
- [lease.freed] chat: 7.8 GiB back, 0.5s after its word
- [lease.freed] images: 7.8 GiB back, 0.5s after its word
- [lease.granted] me: the whole card, hold; waited 0.5s for chat, images
- [lease.started] me
- me is granted gpu0
- readings slow
