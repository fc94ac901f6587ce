"""How engines say that nothing is in flight."""
