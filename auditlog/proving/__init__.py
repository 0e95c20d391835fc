"""What the log gives to outsiders, and its console pages: checkpoints, tiles, proofs, their state."""
