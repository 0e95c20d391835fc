"""The two clients, with the same operations."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self

from agentid.client.obtaining import ID_TOKEN, ObtainedToken, SubjectType, WantedToken
from agentid.client.operation import S
from agentid.client.operations.agents import Agents
from agentid.client.operations.audit_log import AuditLog
from agentid.client.operations.authorities import Authorities
from agentid.client.operations.certificates import Certificates
from agentid.client.operations.delegation import Delegations
from agentid.client.operations.events import Events
from agentid.client.operations.gateway_routes import GatewayRoutes
from agentid.client.operations.incidents import Incidents
from agentid.client.operations.messages import Messages
from agentid.client.operations.oauth import OAuth
from agentid.client.operations.report_schedules import ReportSchedules
from agentid.client.operations.reports import Reports
from agentid.client.operations.signals import Signals
from agentid.client.operations.trusted_issuers import TrustedIssuers
from agentid.client.operations.webhooks import Webhooks
from agentid.client.request import Prove
from agentid.client.transport import AsyncTransport, Configuration, Transport


class Operations(Generic[S]):
    """All operations, over one transport."""

    def __init__(self, transport: S) -> None:
        self.transport: S = transport
        self.agents: Agents[S] = Agents(transport)
        self.audit_log: AuditLog[S] = AuditLog(transport)
        self.authorities: Authorities[S] = Authorities(transport)
        self.certificates: Certificates[S] = Certificates(transport)
        self.delegation: Delegations[S] = Delegations(transport)
        self.events: Events[S] = Events(transport)
        self.gateway_routes: GatewayRoutes[S] = GatewayRoutes(transport)
        self.incidents: Incidents[S] = Incidents(transport)
        self.messages: Messages[S] = Messages(transport)
        self.oauth: OAuth[S] = OAuth(transport)
        self.report_schedules: ReportSchedules[S] = ReportSchedules(transport)
        self.reports: Reports[S] = Reports(transport)
        self.signals: Signals[S] = Signals(transport)
        self.trusted_issuers: TrustedIssuers[S] = TrustedIssuers(transport)
        self.webhooks: Webhooks[S] = Webhooks(transport)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.transport.configuration.base_url!r})"


class Client(Operations[Transport]):
    """A client that blocks; safe to share between threads.

    Address and API key come from the arguments, or else from AGENTID_BASE_URL and AGENTID_API_KEY. `more` are
    fields of `Configuration`: `timeout` in seconds for each try, `retries`, `allow_http`.
    Raises: ConfigurationError.
    """

    def __init__(self, base_url: str | None = None, api_key: str | None = None, **more: Any) -> None:
        super().__init__(Transport(Configuration.of(base_url, api_key, **more)))

    def obtain_token(
        self,
        agent_id: str,
        *,
        subject_token: str | None = None,
        subject_token_type: SubjectType = ID_TOKEN,
        chain: Sequence[Mapping[str, Any]] | None = None,
        scope: str | None = None,
        audience: str | None = None,
        ttl_seconds: int | None = None,
        parent_token: str | None = None,
        proof: Prove | None = None,
    ) -> ObtainedToken:
        """Obtain a delegation token for an agent of this client.

        With `subject_token`, a person's ID token or a delegation token, by exchange (RFC 8693); with
        `chain`, from the root to the agent, by delegation. `proof`, as `DpopKey.proof`, binds the token to
        its key. Raises: ConfigurationError, and what a call raises.
        """
        wanted = WantedToken(
            agent_id,
            subject_token=subject_token,
            subject_token_type=subject_token_type,
            chain=chain,
            scope=scope,
            audience=audience,
            ttl_seconds=ttl_seconds,
            parent_token=parent_token,
            proof=proof,
        )
        request = wanted.exchange(self.oauth.metadata()) if wanted.is_exchange else wanted.delegation()
        return self.transport.send(request)

    def close(self) -> None:
        self.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(Operations[AsyncTransport]):
    """A client for an event loop, with the arguments of `Client`."""

    def __init__(self, base_url: str | None = None, api_key: str | None = None, **more: Any) -> None:
        super().__init__(AsyncTransport(Configuration.of(base_url, api_key, **more)))

    async def obtain_token(
        self,
        agent_id: str,
        *,
        subject_token: str | None = None,
        subject_token_type: SubjectType = ID_TOKEN,
        chain: Sequence[Mapping[str, Any]] | None = None,
        scope: str | None = None,
        audience: str | None = None,
        ttl_seconds: int | None = None,
        parent_token: str | None = None,
        proof: Prove | None = None,
    ) -> ObtainedToken:
        """`Client.obtain_token`, awaited."""
        wanted = WantedToken(
            agent_id,
            subject_token=subject_token,
            subject_token_type=subject_token_type,
            chain=chain,
            scope=scope,
            audience=audience,
            ttl_seconds=ttl_seconds,
            parent_token=parent_token,
            proof=proof,
        )
        request = wanted.exchange(await self.oauth.metadata()) if wanted.is_exchange else wanted.delegation()
        return await self.transport.send(request)

    async def close(self) -> None:
        await self.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
