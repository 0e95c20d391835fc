"""Delegation tokens (docs/delegation.md): who acts for whom, checked with the service's public keys."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec

from agentid import jose
from agentid.errors import NotValid, Reason
from agentid.jose import claim
from agentid.verify.proofs import PresentedProof, verify_proof

MAX_TOKEN: Final = 18_432  # characters of the largest token that the service issues
MAX_CHAIN: Final = 8


@dataclass(frozen=True)
class TokenRules:
    """What a receiver accepts: `audience` is its own name; `skew_seconds` is the clocks' difference.

    A token without an audience is refused unless `accept_any_audience`.
    """

    issuer: str
    audience: str
    environment: str = "live"
    skew_seconds: int = 60
    accept_any_audience: bool = False


@dataclass(frozen=True)
class Actor:
    """One of the chain; `kind` is human, agent, sub_agent or service."""

    sub: str
    kind: str


@dataclass(frozen=True)
class VerifiedToken:
    """An authentic token for this receiver, now; the last of `chain` acts.

    `root_issuer` names who vouched for the root; None: the root is only asserted. `bound_to` is the
    thumbprint of the holder's key. `status_uri` and `status_index` say where its revocation is published.
    """

    token_id: str
    agent_id: str
    chain: tuple[Actor, ...]
    scope: frozenset[str]
    issued_at: datetime
    expires_at: datetime
    environment: str
    audience: str | None
    certificate_serial: str | None
    bound_to: str | None
    root_issuer: str | None
    status_uri: str | None
    status_index: int | None
    claims: Mapping[str, Any] = field(repr=False)

    @property
    def principal(self) -> str:
        return self.chain[-1].sub


def verify_token(
    token: str,
    *,
    keys: Mapping[str, ec.EllipticCurvePublicKey],
    rules: TokenRules,
    now: datetime,
    proof: PresentedProof | None = None,
) -> VerifiedToken:
    """Check a token, and for a bound one the proof of possession. Raises: NotValid.

    What it says of revocation is not asked here: `status_uri` and `certificate_serial` lead there.
    """
    found = _read(jose.signed_claims(token, kind=jose.DELEGATION, keys=keys, max_length=MAX_TOKEN))
    _check_rules(found, rules, now)
    if found.bound_to is not None:
        if proof is None:
            raise NotValid(Reason.PROOF_REQUIRED, "the token is bound to a key")
        if verify_proof(proof, access_token=token, now=now) != found.bound_to:
            raise NotValid(Reason.WRONG_KEY, "the proof is by another key")
    return found


def _check_rules(found: VerifiedToken, rules: TokenRules, now: datetime) -> None:
    moment, claims = now.timestamp(), found.claims
    if claims["iss"] != rules.issuer:
        raise NotValid(Reason.INVALID_ISSUER)
    if found.environment != rules.environment:
        raise NotValid(Reason.WRONG_ENVIRONMENT, f"a token of {found.environment}")
    if moment < claims["nbf"] - rules.skew_seconds:
        raise NotValid(Reason.NOT_YET_VALID)
    if moment >= claims["exp"] + rules.skew_seconds:
        raise NotValid(Reason.EXPIRED)
    if found.audience != rules.audience and not (found.audience is None and rules.accept_any_audience):
        raise NotValid(Reason.WRONG_AUDIENCE)


def _read(claims: Mapping[str, Any]) -> VerifiedToken:
    for name in ("iss", "env", "scope"):
        claim(claims, name, str)
    jose.moment(claims, "nbf")
    status = _part(_part(claims, "status"), "status_list")
    return VerifiedToken(
        token_id=_uuid(claim(claims, "jti", str)),
        agent_id=_uuid(claim(claims, "agent_id", str)),
        chain=_chain(claims),
        scope=frozenset(claims["scope"].split()),
        issued_at=jose.moment(claims, "iat"),
        expires_at=jose.moment(claims, "exp"),
        environment=claims["env"],
        audience=claim(claims, "aud", str) if "aud" in claims else None,
        certificate_serial=claim(claims, "cert_serial", str) if "cert_serial" in claims else None,
        bound_to=claim(_part(claims, "cnf"), "jkt", str) if "cnf" in claims else None,
        root_issuer=claim(_part(claims, "sub_id"), "iss", str) if "sub_id" in claims else None,
        status_uri=claim(status, "uri", str) if status else None,
        status_index=claim(status, "idx", int) if status else None,
        claims=claims,
    )


def _chain(claims: Mapping[str, Any]) -> tuple[Actor, ...]:
    """The actors, root to current: `act` is the current one and nests those before it."""
    later: list[Mapping[str, Any]] = []
    act = claims
    while "act" in act:
        act = _part(act, "act")
        later.append(act)
        if len(later) >= MAX_CHAIN:
            raise NotValid(Reason.MALFORMED, "too many actors")
    actors = (claims, *reversed(later))
    return tuple(Actor(claim(each, "sub", str), claim(each, "sub_type", str)) for each in actors)


def _part(claims: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return claim(claims, name, dict) if name in claims else {}


def _uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise NotValid(Reason.MALFORMED, "not a UUID") from None
