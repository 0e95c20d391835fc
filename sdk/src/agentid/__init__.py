"""The client of the agent identity and compliance service."""

from agentid.client.deciding import Decision, asking
from agentid.client.service import AsyncClient, Client
from agentid.client.transport import Retries
from agentid.errors import (
    AgentIdError,
    ApprovalExpired,
    ApprovalTimedOut,
    ConfigurationError,
    Conflict,
    Denied,
    NotAllowed,
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
    "ApprovalExpired",
    "ApprovalTimedOut",
    "AsyncClient",
    "Client",
    "ConfigurationError",
    "Conflict",
    "Decision",
    "Denied",
    "NotAllowed",
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
    "asking",
]
