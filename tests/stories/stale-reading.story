# Readings that stop coming are no ground for a grant after 5 s (B1).
card
blind 6
- [card.unmeasured]: last read 5.5s ago
chat asks 4000
- [lease.queued] chat: 3.9 GiB, interactive
- chat waits, no. 1: gpu0 cannot be read, so nothing is granted on it: last read 5.5s ago
read
- [card.ok]: readings are back
- [lease.granted] chat: 3.9 GiB, interactive
- chat is granted gpu0
- readings fast
