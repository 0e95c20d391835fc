"""The client of the agent identity and compliance service."""

from agentid.client.service import AsyncClient, Client
from agentid.client.transport import Retries
from agentid.errors import (
    AgentIdError,
    ConfigurationError,
    Conflict,
    NotAuthenticated,
    NotFound,
    NotPermitted,
    NotPossible,
    RateLimited,
    Refused,
    ServerFailed,
    ServiceError,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
)

__all__ = [
    "AgentIdError",
    "AsyncClient",
    "Client",
    "ConfigurationError",
    "Conflict",
    "NotAuthenticated",
    "NotFound",
    "NotPermitted",
    "NotPossible",
    "RateLimited",
    "Refused",
    "Retries",
    "ServerFailed",
    "ServiceError",
    "Unavailable",
    "UnexpectedAnswer",
    "Unreachable",
]
