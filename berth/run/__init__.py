"""`berth run`: the wrapper around one engine."""
