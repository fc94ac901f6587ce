# A grant that could not be journaled never was (S6): its client is refused, its memory is free.
card
chat asks 14000
- [lease.queued] chat: 13.7 GiB, interactive
- [lease.granted] chat: 13.7 GiB, interactive
- chat is granted gpu0
- readings fast
journal lost
chat grant-lost
- chat is refused (no_journal): berthd cannot write its journal, so nothing is granted
- readings slow
images asks 16000 wait=30
- [lease.queued] images: 15.6 GiB, interactive
- images waits, no. 1: berthd cannot write its journal, so nothing is granted
journal writable
- [lease.granted] images: 15.6 GiB, interactive
- images is granted gpu0
- readings fast
