"""Verification of ID tokens (OpenID Connect Core 1.0 §2, §3.1.3.7) that a client hands in for a human.

An identity assertion grant (ID-JAG, draft-ietf-oauth-identity-assertion-authz-grant) is like one, but made
for this service and one client.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import jwt
import msgspec
from django.conf import settings
from msgspec import Meta

from delegation.issuers import key_sets
from delegation.issuers.errors import IdTokenFault, IdTokenRefused
from delegation.issuers.key_sets import IssuerKey
from delegation.jose import compact
from delegation.jose.compact import CompactJws
from delegation.jose.dpop import MAX_ID_LENGTH
from delegation.jose.tokens import LATEST_TIME, ChainActor, ChainActorType, SubjectIdentifier

MAX_LENGTH: Final = 16_384
LEEWAY_SECONDS: Final = 60
JAG_TYPE: Final = "oauth-id-jag+jwt"
MOST_AUDIENCES: Final = 20
REFUSED_HEADERS: Final = frozenset({"crit", "jku", "jwk", "x5u", "x5c", "b64", "zip", "enc", "cty"})
"""Members that bring a key or ask for an unsupported extension; `x5t` and unknown members are ignored."""

_pyjws: Final = jwt.PyJWS(algorithms=list(key_sets.ALGORITHMS))


@dataclass(frozen=True)
class IssuerTrust:
    """A tenant's requirements for ID tokens; `required_claims` maps a name to its permitted values."""

    issuer: str
    audiences: frozenset[str]
    algorithms: frozenset[str]
    subject_claim: str
    required_claims: Mapping[str, Sequence[str]]
    max_age: timedelta


class _Granted(msgspec.Struct):
    """The claims of an identity assertion grant that an ID token has not."""

    jti: Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
    scope: str | None = None
    resource: str | list[str] = []


@dataclass(frozen=True)
class VerifiedHuman:
    """The human an ID token names: `actor` by `subject_claim`, `identifier` by `iss` and `sub`.

    `jti`, and what the issuer grants (`scope`, `resources`), are of an identity assertion grant.
    """

    actor: ChainActor
    identifier: SubjectIdentifier
    jti: str = ""
    scope: str | None = None
    resources: Sequence[str] = ()


def parse(text: str) -> tuple[CompactJws, str]:
    """Return a token, parsed and nothing more, and the issuer it names. Raises: IdTokenRefused."""
    try:
        parsed = compact.parse(text, max_length=MAX_LENGTH)
    except ValueError as error:
        raise IdTokenRefused(IdTokenFault.MALFORMED) from error
    issuer = parsed.payload.get("iss")
    if not isinstance(issuer, str) or not (issuer.isascii() and issuer.isprintable()):
        raise IdTokenRefused(IdTokenFault.MALFORMED)
    return parsed, issuer


def verify(
    token: CompactJws,
    *,
    trust: IssuerTrust,
    keys: Callable[[str | None], Sequence[IssuerKey]],
    now: datetime,
    clients: Collection[str] | None = None,
) -> VerifiedHuman:
    """Return the human of an ID token that the issuer made for one of the audiences, within `max_age`.

    With `clients`, of an identity assertion grant for one of these, whose `jti` is still to be used up.
    `keys(kid)` gives the issuer's keys, fetched again if the named one was not among them. Raises:
    IdTokenRefused, and what `keys` raises.
    """
    algorithm, kid = _check_header(token.header, trust, "jwt" if clients is None else JAG_TYPE)
    _check_signature(token, algorithm, key_sets.candidates(keys(kid), algorithm=algorithm, kid=kid))
    claims = token.payload
    if claims.get("iss") != trust.issuer:
        raise IdTokenRefused(IdTokenFault.UNTRUSTED_ISSUER)
    # Logout tokens and security event tokens have `events`; a token with `cnf` is no bearer token.
    if "events" in claims or "cnf" in claims:
        raise IdTokenRefused(IdTokenFault.NOT_AN_ID_TOKEN)
    if clients is None:
        _check_audience(claims, trust)
    elif claims.get("aud") not in (settings.TOKEN_ISSUER, [settings.TOKEN_ISSUER]):
        raise IdTokenRefused(IdTokenFault.WRONG_AUDIENCE)
    elif not isinstance(client := claims.get("client_id"), str) or client not in clients:
        raise IdTokenRefused(IdTokenFault.WRONG_CLIENT)
    _check_times(claims, trust, now)
    for name, permitted in trust.required_claims.items():
        value = claims.get(name)
        values = value if isinstance(value, list) else [value]
        if not any(isinstance(one, str) and one in permitted for one in values):
            raise IdTokenRefused(IdTokenFault.CLAIM_NOT_PERMITTED)
    human = _human(claims, trust)
    if clients is None:
        return human
    try:
        granted = msgspec.convert(claims, _Granted)
    except msgspec.ValidationError as error:
        raise IdTokenRefused(IdTokenFault.MALFORMED) from error
    resources = [granted.resource] if isinstance(granted.resource, str) else granted.resource
    return replace(human, jti=granted.jti, scope=granted.scope, resources=resources)


def _check_header(header: dict[str, Any], trust: IssuerTrust, typ: str) -> tuple[str, str | None]:
    """Return the algorithm and the key id, both unverified. Raises: IdTokenRefused."""
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in trust.algorithms.intersection(key_sets.ALGORITHMS):
        raise IdTokenRefused(IdTokenFault.UNSUPPORTED_ALGORITHM)
    if not REFUSED_HEADERS.isdisjoint(header):
        raise IdTokenRefused(IdTokenFault.UNSUPPORTED_HEADER)
    # RFC 8725 §3.11: an access token, a logout token or a delegation says so here.
    if not isinstance(kind, str) or kind.lower().removeprefix("application/") != typ:
        raise IdTokenRefused(IdTokenFault.UNSUPPORTED_TYPE)
    if not isinstance(kid, str | None):
        raise IdTokenRefused(IdTokenFault.MALFORMED)
    return algorithm, kid


def _check_signature(token: CompactJws, algorithm: str, fitting: Sequence[IssuerKey]) -> None:
    if len(fitting) != 1:
        raise IdTokenRefused(IdTokenFault.AMBIGUOUS_KEY if fitting else IdTokenFault.UNKNOWN_KEY)
    try:
        _pyjws.decode(token.text, fitting[0].public, algorithms=[algorithm])
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise IdTokenRefused(IdTokenFault.INVALID_SIGNATURE) from error


def _check_audience(claims: dict[str, Any], trust: IssuerTrust) -> None:
    """Check that each `aud`, and `azp`, is an audience the tenant accepts (Core §3.1.3.7)."""
    stated, party = claims.get("aud"), claims.get("azp")
    audiences = [stated] if isinstance(stated, str) else stated
    if not isinstance(audiences, list) or not 1 <= len(audiences) <= MOST_AUDIENCES:
        raise IdTokenRefused(IdTokenFault.WRONG_AUDIENCE)
    if not all(isinstance(one, str) and one in trust.audiences for one in audiences):
        raise IdTokenRefused(IdTokenFault.WRONG_AUDIENCE)
    is_needed = len(audiences) > 1
    if (party is not None or is_needed) and (not isinstance(party, str) or party not in trust.audiences):
        raise IdTokenRefused(IdTokenFault.WRONG_AUTHORIZED_PARTY)


def _check_times(claims: dict[str, Any], trust: IssuerTrust, now: datetime) -> None:
    moment = now.timestamp()
    expires, issued = _time(claims, "exp"), _time(claims, "iat")
    begins = _time(claims, "nbf") if "nbf" in claims else issued
    if moment >= expires + LEEWAY_SECONDS:
        raise IdTokenRefused(IdTokenFault.EXPIRED)
    if moment < max(issued, begins) - LEEWAY_SECONDS:
        raise IdTokenRefused(IdTokenFault.NOT_YET_VALID)
    if moment >= issued + trust.max_age.total_seconds() + LEEWAY_SECONDS:
        raise IdTokenRefused(IdTokenFault.TOO_OLD)


def _time(claims: dict[str, Any], name: str) -> float:
    """Seconds, with or without a fraction (RFC 7519 §2)."""
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= LATEST_TIME:
        raise IdTokenRefused(IdTokenFault.MALFORMED)
    return float(value)


def _human(claims: dict[str, Any], trust: IssuerTrust) -> VerifiedHuman:
    name = claims.get(trust.subject_claim)
    if trust.subject_claim == "email" and claims.get("email_verified") is not True:
        raise IdTokenRefused(IdTokenFault.EMAIL_NOT_VERIFIED)
    if not isinstance(name, str):
        raise IdTokenRefused(IdTokenFault.INVALID_SUBJECT)
    try:
        identifier = msgspec.convert(
            {"format": "iss_sub", "iss": trust.issuer, "sub": claims.get("sub")}, SubjectIdentifier
        )
        return VerifiedHuman(ChainActor(name, ChainActorType.HUMAN), identifier)
    except ValueError as error:
        raise IdTokenRefused(IdTokenFault.INVALID_SUBJECT) from error
