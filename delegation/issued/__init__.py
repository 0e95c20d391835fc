"""Issued tokens: their rows, their revocation, and the lists of their statuses."""
