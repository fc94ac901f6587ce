"""The actors of berthd. Each folder: what it hears and says, a pure core, a thin shell."""
