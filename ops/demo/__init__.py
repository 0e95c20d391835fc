"""The demo: the life of an agent, played over HTTP against a running service."""
