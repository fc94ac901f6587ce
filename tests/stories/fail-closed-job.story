# A --fail-closed job is stopped by nobody but `berth stop` (Q2): neither by a higher priority nor by
# a hold.
card
render runs 20000 job fail_closed priority=batch
- [lease.queued] render: 19.5 GiB, batch
- [lease.granted] render: 19.5 GiB, batch
- render is granted gpu0
- readings fast
- [lease.started] render
- readings slow
game asks 16000 priority=foreground wait=5
- [lease.queued] game: 15.6 GiB, foreground
- game waits, no. 1: render is a job and runs to its end
me asks whole priority=hold wait=5
- [lease.queued] me: the whole card, hold
- me waits, no. 1: render is a job and runs to its end
- game waits, no. 2: me comes first
after 6
- [lease.refused] me: no room on gpu0 in 5s: render is a job and runs to its end
- [lease.refused] game: no room on gpu0 in 5s: me comes first, and waits itself: render is a job and runs to its end
- me is refused (wait_expired): no room on gpu0 in 5s: render is a job and runs to its end
- game is refused (wait_expired): no room on gpu0 in 5s: me comes first, and waits itself: render is a job and runs to its end
render stopped
- [lease.draining] render: stopped by a person
- render is told: stop 1 (stopped by a person)
render says released
- [lease.released] render
- readings fast
