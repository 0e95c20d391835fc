"""Protects an API by the service's decision; the shells are in `asgi`, `wsgi`, `django` and `mcp`."""

from agentid.middleware.gate import AgentIdentity, Gate, Inbound

__all__ = ["AgentIdentity", "Gate", "Inbound"]
