"""Stops of a kind: all agents that match are suspended or revoked at once, and a signed receipt says so."""
