"""Certificates of agents: issuing, revoking, verifying, and the revocation list."""
