"""Keys that an agent makes itself, and shows that it holds (DPoP, RFC 9449)."""

from agentid.keys.auth import DpopAuth
from agentid.keys.dpop import DpopKey

__all__ = ["DpopAuth", "DpopKey"]
