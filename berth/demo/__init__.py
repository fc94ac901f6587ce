"""`berth demo`: Berth at work on simulated cards, in a folder of its own."""
