"""The client of the agent identity and compliance service."""

from agentid.client.deciding import Decision as Decision
from agentid.client.deciding import asking as asking
from agentid.client.service import AsyncClient as AsyncClient
from agentid.client.service import Client as Client
from agentid.client.transport import Retries as Retries
from agentid.errors import AgentIdError as AgentIdError
from agentid.errors import ApprovalExpired as ApprovalExpired
from agentid.errors import ApprovalTimedOut as ApprovalTimedOut
from agentid.errors import ConfigurationError as ConfigurationError
from agentid.errors import Conflict as Conflict
from agentid.errors import Denied as Denied
from agentid.errors import NotAllowed as NotAllowed
from agentid.errors import NotAuthenticated as NotAuthenticated
from agentid.errors import NotFound as NotFound
from agentid.errors import NotPermitted as NotPermitted
from agentid.errors import NotPossible as NotPossible
from agentid.errors import RateLimited as RateLimited
from agentid.errors import Refused as Refused
from agentid.errors import ServerFailed as ServerFailed
from agentid.errors import ServiceError as ServiceError
from agentid.errors import Unavailable as Unavailable
from agentid.errors import UnexpectedAnswer as UnexpectedAnswer
from agentid.errors import Unreachable as Unreachable
