"""The client of the agent identity and compliance service."""
