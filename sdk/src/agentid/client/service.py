"""The two clients, with the same operations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self, TypedDict, Unpack

from agentid import jose
from agentid.client.deciding import Act, Decision, decided, evaluation
from agentid.client.generated.operations import Operations
from agentid.client.generated.results import ApprovalDetail
from agentid.client.transport import AsyncTransport, Configuration, Prove, Transport, completed, settled
from agentid.errors import ConfigurationError, NotValid, UnexpectedAnswer
from agentid.jose import DELEGATION, HEADER_NAMES

SubjectType = Literal["id_token", "access_token", "jwt"]
ID_TOKEN: Final = "id_token"
TYPE_PREFIX: Final = "urn:ietf:params:oauth:token-type:"
AGENT_SUFFIX: Final = ":params:oauth:token-type:agent"


class Wanted(TypedDict, total=False):
    """What an agent asks for; either `subject_token`, or the `chain` from its root to the agent.

    `subject_token` is a person's ID token or a delegation token (`subject_token_type`: `access_token`,
    `jwt`). `ttl_seconds` and `parent_token` belong to a chain. `proof` binds the token to its key.
    """

    subject_token: str | None
    subject_token_type: SubjectType
    chain: Sequence[Mapping[str, Any]] | None
    scope: str | None
    audience: str | None
    ttl_seconds: int | None
    parent_token: str | None
    proof: Prove | None


@dataclass(frozen=True, kw_only=True)
class ObtainedToken:
    """A delegation token that the service has just issued; its signature is not verified again.

    `principal` is who acts, `bound_to` the thumbprint of the key whose possession its holder must prove.
    """

    token: str = field(repr=False)
    principal: str
    scope: str
    audience: str | None
    expires_at: datetime
    bound_to: str | None

    @classmethod
    def of(cls, token: str) -> Self:
        """Read a token. Raises: UnexpectedAnswer for what is no delegation token."""
        try:
            claims = jose.parse(token, kind=DELEGATION, names=HEADER_NAMES).payload
            actor, key = claims.get("act"), claims.get("cnf")
            return cls(
                token=token,
                principal=str((actor if actor and isinstance(actor, dict) else claims)["sub"]),
                scope=str(claims["scope"]),
                audience=claims.get("aud"),
                expires_at=datetime.fromtimestamp(claims["exp"], UTC),
                bound_to=key.get("jkt") if isinstance(key, dict) else None,
            )
        except (NotValid, LookupError, TypeError, ValueError, OverflowError, OSError):
            raise UnexpectedAnswer("not a delegation token") from None


class Client(Operations[Transport]):
    """A client that blocks; safe to share between threads.

    Address and API key come from the arguments, or else from AGENTID_BASE_URL and AGENTID_API_KEY. `more` are
    fields of `Configuration`: `timeout` in seconds for each try, `retries`, `allow_http`.
    Raises: ConfigurationError.
    """

    def __init__(self, base_url: str | None = None, api_key: str | None = None, **more: Any) -> None:
        super().__init__(Transport(Configuration.of(base_url, api_key, **more)))

    def __repr__(self) -> str:
        return f"Client({self.transport.configuration.base_url!r})"

    def obtain_token(self, agent_id: str, **wanted: Unpack[Wanted]) -> ObtainedToken:
        """Obtain a delegation token for an agent of this client; the arguments are those of `Wanted`.

        With `subject_token` by exchange (RFC 8693), with `chain` by delegation.
        Raises: ConfigurationError, and what a call raises.
        """
        return completed(_obtained(self, agent_id, wanted))

    def decide(
        self, agent_id: str, action: str, *, approval: str | None = None, **act: Unpack[Act]
    ) -> Decision:
        """Ask whether an agent may do something; the arguments are those of `Act`.

        `approval` is the receipt of an approval of this very act; one that is allowed by it has used it up.
        """
        return Decision.of(self.decisions.evaluate(**evaluation(agent_id, action, act, approval)))

    def wait_for_approval(self, approval_id: str, seconds: float | None = None) -> ApprovalDetail:
        """Wait until an approval is decided or has expired; after so many seconds it may be pending."""
        return completed(decided(self, approval_id, seconds))

    def close(self) -> None:
        self.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncClient(Operations[AsyncTransport]):
    """A client for an event loop, with the arguments of `Client`."""

    def __init__(self, base_url: str | None = None, api_key: str | None = None, **more: Any) -> None:
        super().__init__(AsyncTransport(Configuration.of(base_url, api_key, **more)))

    def __repr__(self) -> str:
        return f"AsyncClient({self.transport.configuration.base_url!r})"

    async def obtain_token(self, agent_id: str, **wanted: Unpack[Wanted]) -> ObtainedToken:
        """`Client.obtain_token`, awaited."""
        return await _obtained(self, agent_id, wanted)

    async def decide(
        self, agent_id: str, action: str, *, approval: str | None = None, **act: Unpack[Act]
    ) -> Decision:
        """`Client.decide`, awaited."""
        return Decision.of(await self.decisions.evaluate(**evaluation(agent_id, action, act, approval)))

    async def wait_for_approval(self, approval_id: str, seconds: float | None = None) -> ApprovalDetail:
        """`Client.wait_for_approval`, awaited."""
        return await decided(self, approval_id, seconds)

    async def close(self) -> None:
        await self.transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


async def _obtained(client: Operations[Any], agent_id: str, wanted: Wanted) -> ObtainedToken:
    """Exchange a subject's token with the agent as the actor, or delegate a chain.

    Raises: ConfigurationError, and what a call raises.
    """
    is_exchange = wanted.get("subject_token") is not None
    if is_exchange == (wanted.get("chain") is not None):
        raise ConfigurationError("give either subject_token or chain")
    if not is_exchange:
        given = {name: value for name, value in wanted.items() if not name.startswith("subject_token")}
        return ObtainedToken.of((await settled(client.delegation.issue(agent_id, **given))).token)
    if wanted.get("ttl_seconds") is not None or wanted.get("parent_token") is not None:
        raise ConfigurationError("ttl_seconds and parent_token belong to a chain")
    named = (await settled(client.oauth.metadata())).actor_token_types_supported
    actor_type = next((each for each in named if each.endswith(AGENT_SUFFIX)), None)
    if actor_type is None:
        raise ConfigurationError("the service names no type for agents in its OAuth metadata")
    exchanged = await settled(
        client.oauth.exchange(
            subject_token=wanted["subject_token"],
            subject_token_type=TYPE_PREFIX + wanted.get("subject_token_type", ID_TOKEN),
            actor_token=agent_id,
            actor_token_type=actor_type,
            scope=wanted.get("scope"),
            audience=wanted.get("audience"),
            proof=wanted.get("proof"),
        )
    )
    return ObtainedToken.of(exchanged.access_token)
