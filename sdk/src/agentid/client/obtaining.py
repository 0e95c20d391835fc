"""The request with which an agent obtains a token: an exchange of a subject token, else a delegation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, Self

from agentid.client.operations.delegation import Delegations
from agentid.client.operations.oauth import OAuth
from agentid.client.request import Prove, Request
from agentid.client.results.oauth import Metadata
from agentid.errors import ConfigurationError, UnexpectedAnswer
from agentid.jose import jws
from agentid.jose.kinds import DELEGATION, HEADER_NAMES
from agentid.reasons import NotValid

SubjectType = Literal["id_token", "access_token", "jwt"]
ID_TOKEN: Final = "id_token"
TYPE_PREFIX: Final = "urn:ietf:params:oauth:token-type:"
AGENT_SUFFIX: Final = ":params:oauth:token-type:agent"


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
            claims = jws.parse(token, kind=DELEGATION, names=HEADER_NAMES).payload
            actor = _object(claims.get("act")) or claims
            return cls(
                token=token,
                principal=str(actor["sub"]),
                scope=str(claims["scope"]),
                audience=claims.get("aud"),
                expires_at=datetime.fromtimestamp(claims["exp"], UTC),
                bound_to=_object(claims.get("cnf")).get("jkt"),
            )
        except (NotValid, LookupError, TypeError, ValueError, OverflowError, OSError):
            raise UnexpectedAnswer("not a delegation token") from None


@dataclass(frozen=True)
class WantedToken:
    """What an agent asks for; either `subject_token`, or the `chain` from its root to the agent.

    `subject_token` is a person's ID token or a delegation token (`access_token`, `jwt`). `ttl_seconds` and
    `parent_token` belong to a chain. Raises: ConfigurationError.
    """

    agent_id: str
    subject_token: str | None = field(default=None, repr=False)
    subject_token_type: SubjectType = ID_TOKEN
    chain: Sequence[Mapping[str, Any]] | None = None
    scope: str | None = None
    audience: str | None = None
    ttl_seconds: int | None = None
    parent_token: str | None = field(default=None, repr=False)
    proof: Prove | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.subject_token is None) == (self.chain is None):
            raise ConfigurationError("give either subject_token or chain")
        if self.chain is None and (self.ttl_seconds is not None or self.parent_token is not None):
            raise ConfigurationError("ttl_seconds and parent_token belong to a chain")

    @property
    def is_exchange(self) -> bool:
        return self.subject_token is not None

    def exchange(self, metadata: Metadata) -> Request[ObtainedToken]:
        """The exchange (RFC 8693), with the agent as the actor. Raises: ConfigurationError."""
        named = metadata.actor_token_types_supported
        actor_type = next((each for each in named if each.endswith(AGENT_SUFFIX)), None)
        if actor_type is None:
            raise ConfigurationError("the service names no type for agents in its OAuth metadata")
        request = OAuth.exchange.describe(
            None,
            subject_token=self.subject_token or "",
            subject_token_type=TYPE_PREFIX + self.subject_token_type,
            actor_token=self.agent_id,
            actor_token_type=actor_type,
            scope=self.scope,
            audience=self.audience,
            proof=self.proof,
        )
        return request.followed_by(lambda answer: ObtainedToken.of(answer.access_token))

    def delegation(self) -> Request[ObtainedToken]:
        """The delegation to the agent itself."""
        request = Delegations.issue.describe(
            None,
            self.agent_id,
            chain=self.chain or (),
            scope=self.scope,
            audience=self.audience,
            ttl_seconds=self.ttl_seconds,
            parent_token=self.parent_token,
            proof=self.proof,
        )
        return request.followed_by(lambda answer: ObtainedToken.of(answer.token))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
