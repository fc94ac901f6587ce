# Memory of a process without a lease is counted as taken and told; it is never touched. A whole
# card waits for a squatter of more than 1 GiB, a sized ask is granted beside it.
card
ollama uses 3000
read
- [stowaway.seen] ollama: 2.9 GiB, pid 900
chat asks 20000
- [lease.queued] chat: 19.5 GiB, interactive
- [lease.granted] chat: 19.5 GiB, interactive
- chat is granted gpu0
- readings fast
whole asks whole wait=30
- [lease.queued] whole: the whole card, interactive
- whole waits, no. 1: chat has only just started and answers a request first; ollama uses 2.9 GiB without a lease
chat gone
- [lease.released] chat: its process is gone
- whole waits, no. 1: chat gave its memory back, and the card must show it free; ollama uses 2.9 GiB without a lease
after 2
- [lease.freed] chat: 0.5s after its word
- whole waits, no. 1: ollama uses 2.9 GiB without a lease
- readings slow
ollama uses nothing
after 2
- [stowaway.gone] ollama
- [lease.granted] whole: the whole card, interactive
- whole is granted gpu0
- readings fast
