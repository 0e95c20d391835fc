"""Token exchange (RFC 8693): a human's ID token or a delegation token becomes a delegation to an agent.

There is no impersonation: the actor, an agent of the client's tenant, is always named, and ends the chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings

from agents.errors import AgentNotFound
from agents.models import AgentDid, parse_did
from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.core.identifiers import parse_id
from compliance.core.plain_text import is_plain_text
from delegation import errors, services
from delegation.issuers import services as issuers
from delegation.issuers.errors import IdTokenRefused
from delegation.issuers.id_tokens import VerifiedHuman
from delegation.issuing.applications import Grant
from delegation.issuing.issuance import IssuedDelegation
from delegation.jose import tokens
from delegation.jose.tokens import Chain, ChainActor, ChainActorType, Delegation
from delegation.oauth.errors import (
    InvalidDpopProof,
    InvalidRequest,
    InvalidScope,
    InvalidTarget,
    UnsupportedGrantType,
)
from delegation.oauth.forms import Form
from delegation.standing import standings

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
JWT = "urn:ietf:params:oauth:token-type:jwt"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
DELEGATION_TYPES = (ACCESS_TOKEN, JWT)


def agent_type() -> str:
    """The type of an `actor_token` that is an agent's DID or id, not a token: the client vouches for it."""
    return f"urn:{settings.SERVICE_NAME}:params:oauth:token-type:agent"


@dataclass(frozen=True)
class ExchangeRequest:
    """The parameters of RFC 8693 §2.1; `scope` None is omitted, "" asks for no action.

    The client proved to possess `proven_key`, and wants the token bound to `bound_to`.
    """

    subject_token: str
    subject_type: str
    actor_token: str
    actor_type: str
    issued_type: str
    scope: str | None
    audience: str | None
    bound_to: str | None
    proven_key: str | None = None


def read(form: Form) -> ExchangeRequest:
    """The request in a form. Raises: OAuthError."""
    if form.require("grant_type") != GRANT_TYPE:
        raise UnsupportedGrantType()
    subject_token, subject_type = form.require("subject_token"), form.require("subject_token_type")
    if subject_type not in (ID_TOKEN, ID_JAG, *DELEGATION_TYPES):
        raise InvalidRequest("subject_token_type: must be an id_token, id-jag, access_token or jwt")
    if form.get("actor_token") is None:
        raise InvalidRequest("actor_token is missing: a token names the agent that acts; none impersonates")
    actor_type = form.require("actor_token_type")
    if actor_type not in (agent_type(), *DELEGATION_TYPES):
        raise InvalidRequest(f"actor_token_type: must be {agent_type()}, access_token or jwt")
    issued_type = form.get("requested_token_type") or ACCESS_TOKEN
    if issued_type not in DELEGATION_TYPES:
        raise InvalidRequest("requested_token_type: must be access_token or jwt")
    bound_to = form.get("dpop_jkt")
    if bound_to is not None and not tokens.is_thumbprint(bound_to):
        raise InvalidRequest("dpop_jkt: not a thumbprint (RFC 7638, SHA-256 in base64url)")
    return ExchangeRequest(
        subject_token=subject_token,
        subject_type=subject_type,
        actor_token=form.require("actor_token"),
        actor_type=actor_type,
        issued_type=issued_type,
        scope=read_scope(form.get("scope")),
        audience=read_audience(form.all("audience"), form.all("resource")),
        bound_to=bound_to,
    )


def exchange(*, tenant_id: UUID, asked: ExchangeRequest, actor: Actor, now: datetime) -> IssuedDelegation:
    """Issue the delegation that a client asks for, for at most an hour; may wait for its agent.

    Don't call it inside a transaction: the keys of an ID token's issuer may have to be fetched. Raises:
    ServiceError, Django's errors.
    """
    try:
        agent_id = _acting_agent(asked, now)
        chain, human, parent = _subject(tenant_id, asked, actor, now)
        scope, audience = asked.scope, asked.audience
        if human is not None:
            # An ID token grants no action by itself.
            scope, audience = bounded(human, scope, audience)
        grant = Grant(
            chain=(*chain, link(chain, agent_id)),
            scope=scope,
            audience=audience,
            bound_to=asked.bound_to,
            proven_key=asked.proven_key,
            subject=human.identifier if human else None,
        )
        return services.issue(
            tenant_id=tenant_id, agent_id=agent_id, grant=grant, parent=parent, actor=actor, now=now
        )
    except ServiceError as error:
        raise _as_oauth(error) from error


def _as_oauth(error: ServiceError) -> ServiceError:
    """What the token endpoint says instead of an error of issuing."""
    match error:
        case AgentNotFound():
            return InvalidRequest("actor_token: unknown_agent: this client has no such agent")
        case errors.ParentKeyNotProven():
            return InvalidDpopProof("subject_token: key_not_proven: its key must be proven")
        case errors.ScopeNotPermitted():
            return InvalidScope(error.message)
        case errors.AgentMayNotDelegate() | errors.CertificateDoesNotCount():
            return InvalidRequest(f"actor_token: {error.message}")
        case errors.ActorNotProven():
            return InvalidRequest(error.message)
        case errors.ParentScopeExceeded():
            return InvalidScope(f"subject_token: {error.message}")
        case errors.ParentAudienceExceeded():
            return InvalidTarget(f"subject_token: {error.message}")
        case errors.ParentTokenRejected() | errors.ParentTokenMalformed() | errors.ParentExceeded():
            return InvalidRequest(f"subject_token: {error.message}")
    return error


def read_scope(text: str | None) -> str | None:
    """The scope that a form asks for, normalised. Raises: InvalidScope."""
    if text is None:
        return None
    try:
        scope = tokens.normalised_scope(text)
    except ValueError as error:
        raise InvalidScope("scope: malformed (RFC 6749 3.3)") from error
    if len(scope) > tokens.MAX_SCOPE_LENGTH:
        raise InvalidScope(f"scope: at most {tokens.MAX_SCOPE_LENGTH} characters")
    return scope


def read_audience(audiences: Sequence[str], resources: Sequence[str]) -> str | None:
    """The one `aud` that audiences and resources name. Raises: InvalidTarget."""
    for resource in resources:
        # RFC 8707 §2: an absolute URI without a fragment.
        try:
            parts = urlsplit(resource)
        except ValueError as error:
            raise InvalidTarget("resource: not a URI") from error
        is_uri = resource.isascii() and resource.isprintable() and " " not in resource
        if not is_uri or not parts.scheme or not (parts.netloc or parts.path) or "#" in resource:
            raise InvalidTarget("resource: must be an absolute URI without a fragment")
    found = list(dict.fromkeys([*audiences, *resources]))
    if len(found) > 1:
        raise InvalidTarget("A token has one audience: ask for one token each")
    for name in found:
        if len(name) > tokens.MAX_NAME_LENGTH or not is_plain_text(name):
            raise InvalidTarget(f"audience: at most {tokens.MAX_NAME_LENGTH} characters, none of them hidden")
    return found[0] if found else None


def bounded(human: VerifiedHuman, scope: str | None, audience: str | None) -> tuple[str, str | None]:
    """The scope and audience that are asked for, within what the human's issuer granted, if it says so.

    Raises: InvalidScope, InvalidTarget.
    """
    granted = scope if human.scope is None else read_scope(human.scope)
    scope = granted if scope is None else scope
    if not set((scope or "").split()) <= set((granted or "").split()):
        raise InvalidScope("scope: goes beyond what the issuer of the grant states")
    if human.resources:
        audience = audience or read_audience([], human.resources)
        if audience not in human.resources:
            raise InvalidTarget("resource: not one that the issuer of the grant states")
    return scope or "", audience


def _acting_agent(asked: ExchangeRequest, now: datetime) -> UUID:
    """The agent that the actor token is of, or names. Raises: OAuthError, AgentNotFound."""
    if asked.actor_type == agent_type():
        did = parse_did(asked.actor_token)
        agent_id = parse_id(asked.actor_token) if did is None else did.agent_id
        if agent_id is None or (did is not None and did.environment is not environments.current()):
            raise AgentNotFound()
        return agent_id
    token = _delegation(asked.actor_token, "actor_token", now)
    if token.bound_to not in (None, asked.proven_key):
        raise InvalidDpopProof("actor_token: key_not_proven: its key must be proven")
    if not standings([token], now=now)[0].stands:
        raise InvalidRequest("actor_token: stopped: it, or an agent behind it, counts no more")
    return token.agent_id


def _subject(
    tenant_id: UUID, asked: ExchangeRequest, actor: Actor, now: datetime
) -> tuple[Chain, VerifiedHuman | None, Delegation | None]:
    """The start of the chain, and the verified root of an ID token, or the delegation token as the parent."""
    if asked.subject_type in DELEGATION_TYPES:
        parent = _delegation(asked.subject_token, "subject_token", now)
        return parent.chain, None, parent
    try:
        clients = [actor.id.removeprefix("api_key:")] if asked.subject_type == ID_JAG else None
        human = issuers.verify_id_token(
            tenant_id=tenant_id, token=asked.subject_token, clients=clients, now=now
        )
        return (human.actor,), human, None
    except IdTokenRefused as refused:
        raise InvalidRequest(f"subject_token: {refused.fault}") from refused


def _delegation(token: str, parameter: str, now: datetime) -> Delegation:
    """The delegation of a valid token of the current environment. Raises: InvalidRequest with a reason."""
    found = services.verify_here(token=token, now=now)
    if found.delegation is None:
        raise InvalidRequest(f"{parameter}: {found.reason}")
    return found.delegation


def link(chain: Chain, agent_id: UUID) -> ChainActor:
    """The agent as the chain's next actor: an agent, or one below an agent."""
    did = str(AgentDid(environments.current(), agent_id))
    if any(one.sub == did for one in chain):
        raise InvalidRequest("actor_token: actor_in_chain: the agent is in the chain already")
    if len(chain) >= tokens.MAX_CHAIN:
        limit = f"a chain has at most {tokens.MAX_CHAIN} actors"
        raise InvalidRequest(f"subject_token: chain_too_long: {limit}")
    has_agent = any(one.type in (ChainActorType.AGENT, ChainActorType.SUB_AGENT) for one in chain)
    return ChainActor(did, ChainActorType.SUB_AGENT if has_agent else ChainActorType.AGENT)
