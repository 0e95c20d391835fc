"""Protects an API by the service's decision; the shells are in `asgi`, `wsgi`, `django` and `mcp`."""

from agentid.middleware.gate import AgentIdentity as AgentIdentity, Gate as Gate, Inbound as Inbound
