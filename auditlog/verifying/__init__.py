"""Verify a whole log from its rows up, against old checkpoints too, or an export of it."""
