"""Protects an API by the service's decision; the shells are in `asgi`, `wsgi`, `django` and `mcp`."""

from agentid.middleware.decision import AgentIdentity, Inbound
from agentid.middleware.gate import Gate

__all__ = ["AgentIdentity", "Gate", "Inbound"]
