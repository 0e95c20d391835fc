"""Delegation claims: an authority chain as RFC 8693 `sub` and nested `act`, and back.

A chain of actors, root to current, becomes `sub` (the root) and `act` (the current actor, whose own `act`
is the one before it, down to the second): chain → claims → chain is the identity. RFC 8693 has no word for
an actor's kind; `sub_type` beside each `sub` carries it.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from compliance.plain_text import is_plain_text
from delegation.rejections import Reason, TokenRejected

MAX_CHAIN = 8
MAX_NAME_LENGTH = 256
"""Of an actor's `sub`, and of an audience."""
MAX_SCOPE_LENGTH = 500
LATEST_TIME = 253_402_300_799
"""9999-12-31T23:59:59Z in Unix seconds, the last that a datetime can hold."""

# RFC 6749 §3.3: scope-token = 1*( %x21 / %x23-5B / %x5D-7E ), between spaces.
SCOPE_PATTERN = r"^[\u0020\u0021\u0023-\u005B\u005D-\u007E]*$"

_SCOPE = re.compile(SCOPE_PATTERN)

UNKNOWN_SERIAL = ""
"""Stands for the serial in `via` of tokens of the older form, which names none: no certificate has it."""


class ActorType(StrEnum):
    """The kinds of actor in a chain (interface specification, Delegation chain actor)."""

    HUMAN = "human"
    AGENT = "agent"
    SUB_AGENT = "sub_agent"
    SERVICE = "service"


@dataclass(frozen=True)
class ChainActor:
    """One actor of a chain; ValueError unless `sub` has 1 to 256 characters, none of them hidden."""

    sub: str
    type: ActorType

    def __post_init__(self) -> None:
        if not 1 <= len(self.sub) <= MAX_NAME_LENGTH or not is_plain_text(self.sub):
            raise ValueError(f"sub must be 1 to {MAX_NAME_LENGTH} characters, none of them hidden")


Chain = tuple[ChainActor, ...]


@dataclass(frozen=True)
class Delegator:
    """An agent that issued a token, and the certificate it then held; None: it had never been certified."""

    agent_id: UUID
    certificate_serial: str | None = None


@dataclass(frozen=True)
class Delegation:
    """What one token says. Times are whole Unix seconds; `expires_at` is the first second it is void.

    `via` names those who issued the tokens this one was re-delegated from, oldest first.
    """

    issuer: str
    environment: str
    token_id: UUID
    agent_id: UUID
    chain: Chain
    issued_at: int
    not_before: int
    expires_at: int
    scope: str = ""
    audience: str | None = None
    certificate_serial: str | None = None
    via: tuple[Delegator, ...] = field(default=())

    @property
    def principal(self) -> str:
        """Who acts now: the last actor's `sub`."""
        return self.chain[-1].sub

    @property
    def lineage(self) -> tuple[Delegator, ...]:
        """Everyone behind this token, oldest first, its own agent last."""
        return (*self.via, Delegator(self.agent_id, self.certificate_serial))

    @property
    def scopes(self) -> frozenset[str]:
        return frozenset(self.scope.split())

    @property
    def chain_display(self) -> str:
        """The chain for people; names may hold the arrow too, so programs read `chain`."""
        return " → ".join(actor.sub for actor in self.chain)

    @property
    def issued(self) -> datetime:
        return datetime.fromtimestamp(self.issued_at, UTC)

    @property
    def expires(self) -> datetime:
        return datetime.fromtimestamp(self.expires_at, UTC)


def to_claims(delegation: Delegation) -> dict[str, Any]:
    """The JWT claims of a delegation; absent members are left out."""
    root, *later = delegation.chain
    claims: dict[str, Any] = {
        "iss": delegation.issuer,
        "sub": root.sub,
        "sub_type": root.type.value,
        "act": _nested(later),
        "aud": delegation.audience,
        "scope": delegation.scope,
        "iat": delegation.issued_at,
        "nbf": delegation.not_before,
        "exp": delegation.expires_at,
        "jti": str(delegation.token_id),
        "agent_id": str(delegation.agent_id),
        "cert_serial": delegation.certificate_serial,
        "env": delegation.environment,
        "via": [_delegator_claims(delegator) for delegator in delegation.via] or None,
    }
    return _present(claims)


def from_claims(claims: dict[str, Any]) -> Delegation:
    """The delegation that authentic claims tell of; `TokenRejected(malformed)` when they tell of none."""
    try:
        return Delegation(
            issuer=_text(claims["iss"]),
            environment=_text(claims["env"]),
            token_id=UUID(_text(claims["jti"])),
            agent_id=UUID(_text(claims["agent_id"])),
            chain=read_chain(claims),
            issued_at=_time(claims["iat"]),
            not_before=_time(claims["nbf"]),
            expires_at=_time(claims["exp"]),
            scope=_text(claims["scope"]),
            audience=_optional_text(claims, "aud"),
            certificate_serial=_optional_text(claims, "cert_serial"),
            via=tuple(_delegator(entry) for entry in _list(claims.get("via", []))),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TokenRejected(Reason.MALFORMED) from error


def read_chain(claims: dict[str, Any]) -> Chain:
    """The chain, root to current; ValueError, KeyError or TypeError without one of 1 to 8 actors."""
    later: list[ChainActor] = []
    act = claims.get("act")
    while act is not None:
        if not isinstance(act, dict) or len(later) == MAX_CHAIN - 1:
            raise ValueError(f"act must be objects, nested at most {MAX_CHAIN - 1} deep")
        later.append(_actor(act))
        act = act.get("act")
    return (_actor(claims), *reversed(later))


def check_time(delegation: Delegation, *, now: datetime) -> None:
    """Raise `TokenRejected(not_yet_valid | expired)`; void from the second `exp` on (RFC 7519 §4.1.4)."""
    if now.timestamp() < delegation.not_before:
        raise TokenRejected(Reason.NOT_YET_VALID)
    if now.timestamp() >= delegation.expires_at:
        raise TokenRejected(Reason.EXPIRED)


def is_scope(text: str) -> bool:
    """Whether `text` is scope tokens between spaces, or nothing."""
    return _SCOPE.fullmatch(text) is not None


def normalised_scope(text: str) -> str:
    """Scope tokens in their order, each once, single spaces between; ValueError for other characters."""
    if not is_scope(text):
        raise ValueError(
            "scope must be space-delimited tokens of printable ASCII without quotes and backslashes"
        )
    return " ".join(dict.fromkeys(text.split()))


def _nested(later: list[ChainActor]) -> dict[str, Any] | None:
    act: dict[str, Any] | None = None
    for actor in later:
        inner = {} if act is None else {"act": act}
        act = {"sub": actor.sub, "sub_type": actor.type.value, **inner}
    return act


def _actor(claims: dict[str, Any]) -> ChainActor:
    return ChainActor(_text(claims["sub"]), ActorType(_text(claims["sub_type"])))


def _delegator_claims(delegator: Delegator) -> dict[str, Any]:
    return _present({"agent_id": str(delegator.agent_id), "cert_serial": delegator.certificate_serial})


def _delegator(entry: Any) -> Delegator:
    """An entry of `via`; in tokens of the older form it is the agent's id alone."""
    if isinstance(entry, dict):
        return Delegator(UUID(_text(entry["agent_id"])), _optional_text(entry, "cert_serial"))
    return Delegator(UUID(_text(entry)), UNKNOWN_SERIAL)


def _present(claims: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claims.items() if value is not None}


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a string")
    return value


def _optional_text(claims: dict[str, Any], name: str) -> str | None:
    return _text(claims[name]) if name in claims else None


def _time(value: Any) -> int:
    """A NumericDate; fractions, strings and booleans are refused, though RFC 7519 would allow fractions."""
    if type(value) is not int or not 0 <= value <= LATEST_TIME:
        raise ValueError("not a whole number of seconds")
    return value
