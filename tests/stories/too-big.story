# More than the card can ever hand out is refused at once, with the figures.
card total=24576 reserved=400
huge asks 24300
- [lease.queued] huge: 23.7 GiB, interactive
- [lease.refused] huge: 23.7 GiB is more than gpu0 can hand out (23.6 GiB)
- huge is refused (too_big): 23.7 GiB is more than gpu0 can hand out (23.6 GiB)
