"""How engines say that nothing is in flight, and how they unload."""
