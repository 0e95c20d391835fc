"""Delegation claims: an authority chain as RFC 8693 `sub` and nested `act`, and back.

A chain of actors, root to current, becomes `sub` (the root) and `act` (the current actor, whose own `act` is
the one before it, down to the second); `sub_type` beside each `sub` is the actor's kind.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from compliance.core.plain_text import is_plain_text
from delegation.errors import RejectionReason, TokenRejected

MAX_CHAIN = 8
MAX_NAME_LENGTH = 256  # of an actor's `sub`, and of an audience
MAX_SCOPE_LENGTH = 500
MAX_SUBJECT_LENGTH = 255  # of a verified root's issuer and subject (OpenID Connect Core §2: ASCII)
MAX_URI_LENGTH = 256  # of a status list
LATEST_TIME = 253_402_300_799  # 9999-12-31T23:59:59Z in Unix seconds, the last that a datetime can hold

# RFC 6749 §3.3: scope-token = 1*( %x21 / %x23-5B / %x5D-7E ), between spaces.
SCOPE_PATTERN = r"^[\u0020\u0021\u0023-\u005B\u005D-\u007E]*$"
THUMBPRINT_LENGTH = 43
THUMBPRINT_PATTERN = r"^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"
"""A SHA-256 digest in base64url without padding, its unused bits 0: an RFC 7638 thumbprint."""


class ChainActorType(StrEnum):
    HUMAN = "human"
    AGENT = "agent"
    SUB_AGENT = "sub_agent"
    SERVICE = "service"


@dataclass(frozen=True)
class ChainActor:
    """One actor of a chain; ValueError unless `sub` has 1 to 256 characters, none of them hidden."""

    sub: str
    type: ChainActorType

    def __post_init__(self) -> None:
        if not 1 <= len(self.sub) <= MAX_NAME_LENGTH or not is_plain_text(self.sub):
            raise ValueError(f"sub must be 1 to {MAX_NAME_LENGTH} characters, none of them hidden")


Chain = tuple[ChainActor, ...]
NumericDate = Annotated[int, msgspec.Meta(ge=0, le=LATEST_TIME)]
# `$` matches before a line feed at the end too: the length excludes it.
Thumbprint = Annotated[str, msgspec.Meta(pattern=THUMBPRINT_PATTERN, max_length=THUMBPRINT_LENGTH)]
SubjectText = Annotated[str, msgspec.Meta(pattern=rf"^[\x20-\x7E]{{1,{MAX_SUBJECT_LENGTH}}}\Z")]


class ActClaim(msgspec.Struct, frozen=True, omit_defaults=True):
    """An actor, and the actor before it (RFC 8693 §4.1)."""

    sub: str
    sub_type: ChainActorType
    act: "ActClaim | UnsetType" = UNSET

    @property
    def chain(self) -> Chain:
        """The chain, root to current; ValueError for one that `ChainActor` or `MAX_CHAIN` excludes."""
        later: list[ChainActor] = []
        act = self.act
        while act is not UNSET:
            later.append(ChainActor(act.sub, act.sub_type))
            act = act.act
        if len(later) >= MAX_CHAIN:
            raise ValueError("act is nested too deep")
        return (ChainActor(self.sub, self.sub_type), *reversed(later))


CLAIM_NAMES = {
    "issuer": "iss",
    "environment": "env",
    "token_id": "jti",
    "issued_at": "iat",
    "not_before": "nbf",
    "expires_at": "exp",
    "audience": "aud",
    "certificate_serial": "cert_serial",
    "confirmation": "cnf",
    "subject_identifier": "sub_id",
}


class RootAssurance(StrEnum):
    """Return whether a trusted issuer vouched for the root of the chain, or the token's caller stated it."""

    VERIFIED = "verified"
    ASSERTED = "asserted"


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The key whose possession a token's holder must prove (RFC 9449 §6.1), by its thumbprint."""

    jkt: Thumbprint


class SubjectIdentifier(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="format",
    tag="iss_sub",
    rename={"issuer": "iss", "subject": "sub"},
):
    """The root's identity at the issuer that vouched for it (RFC 9493 §3.2.5)."""

    issuer: SubjectText
    subject: SubjectText


class StatusListEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bit of a list of token statuses (Token Status List §6.2)."""

    idx: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    uri: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_URI_LENGTH)]


class TokenStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    status_list: StatusListEntry


if TYPE_CHECKING:
    OptionalText = str | None
    OptionalConfirmation = Confirmation | None
    OptionalSubject = SubjectIdentifier | None
    OptionalStatus = TokenStatus | None
else:
    # Absent or a value: null is malformed.
    OptionalText = str
    OptionalConfirmation = Confirmation
    OptionalSubject = SubjectIdentifier
    OptionalStatus = TokenStatus


class Delegator(msgspec.Struct, frozen=True, omit_defaults=True, rename=CLAIM_NAMES):
    """An agent that issued a token, the token's id, and the certificate the agent then held, if any."""

    agent_id: UUID
    token_id: UUID
    certificate_serial: OptionalText = None


class Delegation(ActClaim, frozen=True, kw_only=True, omit_defaults=True, rename=CLAIM_NAMES):
    """The claims of one token, void from the second `expires_at` on.

    `via` names the issuers of the tokens it was re-delegated from, oldest first.
    """

    issuer: str
    environment: str
    token_id: UUID
    agent_id: UUID
    issued_at: NumericDate
    not_before: NumericDate
    expires_at: NumericDate
    scope: str
    audience: OptionalText = None
    certificate_serial: OptionalText = None
    via: tuple[Delegator, ...] = ()
    confirmation: OptionalConfirmation = None
    subject_identifier: OptionalSubject = None
    status: OptionalStatus = None

    @classmethod
    def of(cls, chain: Chain, **claims: Any) -> "Delegation":
        root, *later = chain
        act: ActClaim | UnsetType = UNSET
        for actor in later:
            act = ActClaim(actor.sub, actor.type, act)
        return cls(sub=root.sub, sub_type=root.type, act=act, **claims)

    @property
    def principal(self) -> str:
        return self.chain[-1].sub

    @property
    def lineage(self) -> tuple[Delegator, ...]:
        """All issuers behind this token, oldest first, its own agent last."""
        return (*self.via, Delegator(self.agent_id, self.token_id, self.certificate_serial))

    @property
    def bound_to(self) -> str | None:
        """The thumbprint of the key that a holder must prove to possess; None for a bearer token."""
        return self.confirmation.jkt if self.confirmation else None

    @property
    def root_assurance(self) -> RootAssurance:
        return RootAssurance.VERIFIED if self.subject_identifier else RootAssurance.ASSERTED

    @property
    def vouching_agent_id(self) -> UUID | None:
        """The agent whose tenant trusts the issuer of a verified root; None for an asserted one."""
        return self.lineage[0].agent_id if self.subject_identifier else None

    @property
    def chain_display(self) -> str:
        """The chain for people; names may contain the arrow too, so programs read `chain`."""
        return " → ".join(actor.sub for actor in self.chain)

    def has_expired(self, now: datetime) -> bool:
        return now.timestamp() >= self.expires_at

    @property
    def issued(self) -> datetime:
        return datetime.fromtimestamp(self.issued_at, UTC)

    @property
    def expires(self) -> datetime:
        return datetime.fromtimestamp(self.expires_at, UTC)


def shown_chain(chain: Chain) -> list[dict[str, str]]:
    """The actors as JSON outside of a token: `sub` and `type`, root to current."""
    return [{"sub": actor.sub, "type": actor.type.value} for actor in chain]


def to_claims(delegation: Delegation) -> dict[str, Any]:
    claims: dict[str, Any] = msgspec.to_builtins(delegation)
    return claims


def from_claims(claims: dict[str, Any]) -> Delegation:
    """The delegation in authentic claims; raises `TokenRejected(malformed)` if they have another form."""
    try:
        delegation = msgspec.convert(claims, Delegation)
        _ = delegation.chain
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise TokenRejected(RejectionReason.MALFORMED) from error
    return delegation


def check_time(delegation: Delegation, *, now: datetime) -> None:
    """Raise `TokenRejected(not_yet_valid | expired)`; void from the second `exp` on (RFC 7519 §4.1.4)."""
    if now.timestamp() < delegation.not_before:
        raise TokenRejected(RejectionReason.NOT_YET_VALID)
    if now.timestamp() >= delegation.expires_at:
        raise TokenRejected(RejectionReason.EXPIRED)


def is_scope(text: str) -> bool:
    return re.fullmatch(SCOPE_PATTERN, text) is not None


def is_thumbprint(text: str) -> bool:
    return re.fullmatch(THUMBPRINT_PATTERN, text) is not None and len(text) == THUMBPRINT_LENGTH


def normalised_scope(text: str) -> str:
    """Scope tokens in their order, each once, single spaces between; ValueError for other characters."""
    if not is_scope(text):
        excluded = "without quotes and backslashes"
        raise ValueError(f"scope must be space-delimited tokens of printable ASCII {excluded}")
    return " ".join(dict.fromkeys(text.split()))
