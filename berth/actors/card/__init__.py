"""The card actor: one GPU, its leases and its queue."""
