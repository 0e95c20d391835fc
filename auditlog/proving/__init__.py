"""The log's answers to outsiders, and its console pages: checkpoints, tiles, proofs, their state."""
