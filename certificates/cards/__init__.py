"""A2A agent cards: what an agent publishes of itself, signed with its key."""
