"""Protects an API by the service's decision; the shells are in `asgi`, `wsgi`, `django` and `mcp`."""

from agentid.middleware.gate import AgentIdentity as AgentIdentity
from agentid.middleware.gate import Gate as Gate
from agentid.middleware.gate import Inbound as Inbound
