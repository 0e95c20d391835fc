"""The client of the agent identity and compliance service."""

from agentid.client.deciding import Decision as Decision, asking as asking
from agentid.client.service import AsyncClient as AsyncClient, Client as Client
from agentid.client.transport import Retries as Retries
from agentid.errors import (
    AgentIdError as AgentIdError,
    ApprovalExpired as ApprovalExpired,
    ApprovalTimedOut as ApprovalTimedOut,
    ConfigurationError as ConfigurationError,
    Conflict as Conflict,
    Denied as Denied,
    NotAllowed as NotAllowed,
    NotAuthenticated as NotAuthenticated,
    NotFound as NotFound,
    NotPermitted as NotPermitted,
    NotPossible as NotPossible,
    RateLimited as RateLimited,
    Refused as Refused,
    ServerFailed as ServerFailed,
    ServiceError as ServiceError,
    Unavailable as Unavailable,
    UnexpectedAnswer as UnexpectedAnswer,
    Unreachable as Unreachable,
)
