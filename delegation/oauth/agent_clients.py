"""Agents as OAuth clients: they authenticate by their registered keys (private_key_jwt, RFC 7523 §2.2).

An agent gets tokens of its own: by client credentials for itself alone, and by an identity assertion grant of
a trusted issuer for itself on behalf of a person.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from agents.models import AgentDid, parse_did
from auditlog.vocabulary import Actor
from certificates.public.verification import latest_of_agents
from compliance.api.gate import Scope
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from delegation import proofs, services
from delegation.agent_keys.models import AgentKey
from delegation.issuers import services as issuers
from delegation.issuers.errors import IdTokenRefused
from delegation.issuers.id_tokens import VerifiedHuman
from delegation.issuing.applications import Grant
from delegation.issuing.issuance import IssuedDelegation
from delegation.jose import compact
from delegation.jose.compact import CompactJws
from delegation.jose.dpop import MAX_ID_LENGTH, REFUSED_NAMES, WINDOW
from delegation.jose.holder_keys import ED25519, EDDSA
from delegation.jose.tokens import Chain
from delegation.oauth import exchange, forms
from delegation.oauth.errors import (
    InvalidClient,
    InvalidGrant,
    InvalidRequest,
    InvalidScope,
    UnauthorizedClient,
    UnsupportedGrantType,
)
from delegation.oauth.forms import Form
from tenancy.authentication import ApiKeyUser

METHOD: Final = "private_key_jwt"
ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
CLIENT_CREDENTIALS: Final = "client_credentials"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
JAG_PROFILE: Final = "urn:ietf:params:oauth:grant-profile:id-jag"
ALGORITHMS: Final = (EDDSA, ED25519)
TYPES: Final = frozenset({"jwt", "client-authentication+jwt"})
LONGEST_LIFE: Final = timedelta(minutes=5)
MAX_LENGTH: Final = 4_096


@dataclass(frozen=True)
class AgentClient:
    """An agent that has authenticated, where views keep the API key; `permitted` by its certificate."""

    id: UUID
    tenant_id: UUID
    permitted: frozenset[str]
    scopes: ClassVar = frozenset({Scope.DELEGATIONS_ISSUE})


def environment_of(request: HttpRequest) -> Environment | None:
    """The environment that an assertion names, unverified; None without one that can be read."""
    try:
        did = parse_did(str(_parsed(forms.sent(request)).payload.get("iss")))
    except ServiceError:
        return None
    return did.environment if did else None


class AgentAuthentication(BaseAuthentication):
    """Verify the assertion of an agent that stands, and use it up; None where no assertion is sent."""

    def authenticate(self, request: Request) -> tuple[ApiKeyUser, AgentClient] | None:
        form = forms.sent(request._request)
        if form.get("client_assertion") is None and form.get("client_assertion_type") is None:
            return None
        if "authorization" in request.headers or form.get("client_secret") is not None:
            raise InvalidRequest("Authenticate in one way only")
        client = _verified(form, now())
        return ApiKeyUser(client.tenant_id), client

    def authenticate_header(self, request: Request) -> str:
        return 'Basic realm="api"'


def issue(*, client: AgentClient, form: Form, proven_key: str | None, now: datetime) -> IssuedDelegation:
    """Issue what an agent asks for itself, within the scope of its certificate, for at most an hour.

    Don't call it inside a transaction: the keys of an issuer may have to be fetched. Raises: ServiceError,
    Django's errors.
    """
    human = _human(client, form, now)
    chain: Chain = () if human is None else (human.actor,)
    scope = exchange.read_scope(form.get("scope"))
    audience = exchange.read_audience(form.all("audience"), form.all("resource"))
    if human is not None:
        scope, audience = exchange.bounded(human, scope, audience)
    if not set((scope or "").split()) <= client.permitted:
        raise InvalidScope("The scope exceeds the agent's permitted actions")
    grant = Grant(
        chain=(*chain, exchange.link(chain, client.id)),
        scope=scope or "",
        audience=audience,
        proven_key=proven_key,
        subject=None if human is None else human.identifier,
    )
    return services.issue(
        tenant_id=client.tenant_id, agent_id=client.id, grant=grant, actor=Actor.agent(client.id), now=now
    )


def _human(client: AgentClient, form: Form, now: datetime) -> VerifiedHuman | None:
    """The person of an identity assertion grant; None for client credentials. Raises: OAuthError."""
    grant_type = form.require("grant_type")
    if grant_type == CLIENT_CREDENTIALS:
        return None
    if grant_type == exchange.GRANT_TYPE:
        raise UnauthorizedClient("Token exchange is for API keys")
    if grant_type != JWT_BEARER:
        raise UnsupportedGrantType()
    did = str(AgentDid(environments.current(), client.id))
    try:
        return issuers.verify_id_token(
            tenant_id=client.tenant_id, token=form.require("assertion"), clients=[did], now=now
        )
    except IdTokenRefused as refused:
        raise InvalidGrant(f"assertion: {refused.fault}") from refused


def _parsed(form: Form) -> CompactJws:
    """The assertion, unverified. Raises: InvalidClient."""
    if form.get("client_assertion_type") != ASSERTION_TYPE:
        raise InvalidClient(f"client_assertion_type must be {ASSERTION_TYPE}")
    try:
        return compact.parse(form.get("client_assertion") or "", max_length=MAX_LENGTH)
    except ValueError as error:
        raise InvalidClient("The client assertion is not one compact JWS") from error


def _verified(form: Form, now: datetime) -> AgentClient:
    parsed = _parsed(form)
    header, claims = parsed.header, parsed.payload
    if header.get("alg") not in ALGORITHMS or not {*REFUSED_NAMES, "jwk"}.isdisjoint(header):
        raise InvalidClient("The client assertion's header is not accepted")
    if str(header.get("typ", "JWT")).lower() not in TYPES:
        raise InvalidClient("The client assertion is of another type")
    issuer, named = claims.get("iss"), form.get("client_id")
    did = parse_did(issuer) if isinstance(issuer, str) else None
    if did is None or claims.get("sub") != issuer or named not in (None, issuer):
        raise InvalidClient("iss and sub must be the agent's DID, and so client_id if it is sent")
    jti = _check_claims(claims, now)
    rows = AgentKey.objects.of_agent(did.agent_id).in_force()
    is_here = did.environment is environments.current()
    kid = header.get("kid")
    fitting = [row for row in rows if kid in (None, row.thumbprint)] if is_here else []
    key = next((row for row in fitting if row.holder.signed(parsed.signed, parsed.signature)), None)
    if key is None:
        raise InvalidClient("No key of the agent made the client assertion")
    found = latest_of_agents([key.agent_id], now=now).get(key.agent_id)
    if found is None or not found.is_in_force:
        raise InvalidClient("The agent is not active with a certificate in force")
    if not proofs.use_once(issuer=key.thumbprint, jti=jti, kept=2 * LONGEST_LIFE):
        raise InvalidClient("The client assertion was used before")
    permitted = found.certificate.claims["permitted_actions"]
    return AgentClient(key.agent_id, key.tenant_id, frozenset(permitted or ()))


def _check_claims(claims: Mapping[str, Any], now: datetime) -> str:
    """The id of an assertion that is for this service and counts now. Raises: InvalidClient."""
    audiences = (settings.TOKEN_ISSUER, f"{settings.BASE_URL}/oauth/token")
    if claims.get("aud") not in (*audiences, *([one] for one in audiences)):
        raise InvalidClient(f"aud must be {settings.TOKEN_ISSUER} alone")
    moment, jti = now.timestamp(), claims.get("jti")
    expires, begins, made_at = (claims.get(name, 0) for name in ("exp", "nbf", "iat"))
    if any(type(one) not in (int, float) for one in (expires, begins, made_at)):
        raise InvalidClient("exp, and iat or nbf if they are there, must be seconds")
    is_begun = max(begins, made_at) <= moment + WINDOW.total_seconds()
    if not is_begun or not moment < expires <= moment + LONGEST_LIFE.total_seconds():
        raise InvalidClient("exp has passed or is more than five minutes ahead, or it counts later")
    if not isinstance(jti, str) or not 1 <= len(jti) <= MAX_ID_LENGTH:
        raise InvalidClient(f"jti must have 1 to {MAX_ID_LENGTH} characters")
    return jti
