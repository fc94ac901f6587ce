"""The journal actor: what must outlive berthd, and the node's one sequence of events."""
