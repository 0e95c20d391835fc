"""Signing a message in an agent's name, and the check of one, for which its verifier may keep an event."""
