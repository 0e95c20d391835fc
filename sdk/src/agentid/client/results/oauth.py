"""Answers about OAuth."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class Metadata(Record):
    """What the authorization server offers (RFC 8414 §2)."""

    issuer: str
    token_endpoint: str
    introspection_endpoint: str
    revocation_endpoint: str
    jwks_uri: str
    response_types_supported: tuple[str, ...]
    grant_types_supported: tuple[str, ...]
    token_endpoint_auth_methods_supported: tuple[str, ...]
    dpop_signing_alg_values_supported: tuple[str, ...]
    introspection_endpoint_auth_methods_supported: tuple[str, ...]
    revocation_endpoint_auth_methods_supported: tuple[str, ...]
    actor_token_types_supported: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ActClaim(Record):
    """The current actor; earlier ones are nested in its own `act`."""

    sub: str
    sub_type: str
    act: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Confirmation(Record):
    """The key that a token is bound to (RFC 9449 §6.1)."""

    jkt: str


@dataclass(frozen=True, kw_only=True)
class SubjectIdentifier(Record):
    """Who was verified by an issuer (RFC 9493 §3.2.5)."""

    format: str
    iss: str
    sub: str


@dataclass(frozen=True, kw_only=True)
class Introspection(Record):
    """Whether a token stands (RFC 7662 §2.2); of a token that does not stand only `active`, false."""

    active: bool
    scope: str | None = None
    token_type: str | None = None
    exp: int | None = None
    iat: int | None = None
    nbf: int | None = None
    sub: str | None = None
    sub_type: str | None = None
    aud: str | None = None
    iss: str | None = None
    jti: str | None = None
    act: ActClaim | None = None
    cnf: Confirmation | None = None
    sub_id: SubjectIdentifier | None = None
    agent_id: str | None = None
    cert_serial: str | None = None
    env: str | None = None
    risk_band: str | None = None
    vouching_tenant: str | None = None


@dataclass(frozen=True, kw_only=True)
class TokenResponse(Record):
    """The token that was issued (RFC 8693 §2.2.1)."""

    access_token: str = field(repr=False)
    issued_token_type: str
    token_type: str
    expires_in: int
    scope: str
