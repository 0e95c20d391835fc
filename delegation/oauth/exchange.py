"""Token exchange (RFC 8693): a human's ID token or a delegation token becomes a delegation to an agent.

There is no impersonation: the actor, an agent of the client's tenant, is always named, and ends the chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings

from agents.did import parse_did
from agents.errors import AgentNotFound
from agents.models import Agent
from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.identifiers import parse_id
from compliance.core.plain_text import is_plain_text
from delegation import authority, errors, services
from delegation.authority import Party, authority_of
from delegation.issuers import services as issuers
from delegation.issuers.errors import IdTokenRefused
from delegation.jose import tokens
from delegation.jose.tokens import Chain, ChainActor, ChainActorType, Delegation, SubjectIdentifier
from delegation.oauth.errors import (
    InvalidDpopProof,
    InvalidRequest,
    InvalidScope,
    InvalidTarget,
    UnsupportedGrantType,
)
from delegation.oauth.forms import Form
from delegation.services import Grant, IssuedDelegation
from delegation.standing import standings

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
JWT = "urn:ietf:params:oauth:token-type:jwt"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
DELEGATION_TYPES = (ACCESS_TOKEN, JWT)


def agent_type() -> str:
    """The type of an `actor_token` that is an agent's DID or id, not a token: the client vouches for it."""
    return f"urn:{settings.SERVICE_NAME}:params:oauth:token-type:agent"


@dataclass(frozen=True)
class ExchangeRequest:
    """The parameters of RFC 8693 §2.1; `scope` None is omitted, "" asks for no action."""

    subject_token: str
    subject_type: str
    actor_token: str
    actor_type: str
    issued_type: str
    scope: str | None
    audience: str | None


@dataclass(frozen=True)
class Possession:
    """The key whose possession the client proved in this request, and the key it wants the token bound to."""

    proven_key: str | None = None
    bound_to: str | None = None


@dataclass(frozen=True)
class Subject:
    """On whose behalf: what begins the chain. A delegation token is the parent of the new one."""

    chain: Chain
    identifier: SubjectIdentifier | None = None
    parent: Delegation | None = None
    parent_token: str | None = None


def read(form: Form) -> ExchangeRequest:
    """The request in a form. Raises: OAuthError."""
    if form.require("grant_type") != GRANT_TYPE:
        raise UnsupportedGrantType()
    subject_token, subject_type = form.require("subject_token"), form.require("subject_token_type")
    if subject_type not in (ID_TOKEN, *DELEGATION_TYPES):
        raise InvalidRequest("subject_token_type: must be an id_token, access_token or jwt")
    if form.get("actor_token") is None:
        raise InvalidRequest("actor_token is missing: a token names the agent that acts; none impersonates")
    actor_type = form.require("actor_token_type")
    if actor_type not in (agent_type(), *DELEGATION_TYPES):
        raise InvalidRequest(f"actor_token_type: must be {agent_type()}, access_token or jwt")
    issued_type = form.get("requested_token_type") or ACCESS_TOKEN
    if issued_type not in DELEGATION_TYPES:
        raise InvalidRequest("requested_token_type: must be access_token or jwt")
    return ExchangeRequest(
        subject_token=subject_token,
        subject_type=subject_type,
        actor_token=form.require("actor_token"),
        actor_type=actor_type,
        issued_type=issued_type,
        scope=_scope(form.get("scope")),
        audience=_audience(form.all("audience"), form.all("resource")),
    )


def exchange(
    *, tenant_id: UUID, request: ExchangeRequest, possession: Possession, actor: Actor, now: datetime
) -> IssuedDelegation:
    """Issue the delegation that a client asks for; it is the agent's, and lasts an hour at most.

    An ID token may make us fetch its issuer's keys: not for use inside a transaction. Raises: OAuthError,
    ServiceError.
    """
    party = _party(tenant_id, request, possession, now)
    agent = party.agent
    subject = _subject(tenant_id, request, now)
    chain = (*subject.chain, _link(subject.chain, agent))
    if len(chain) > tokens.MAX_CHAIN:
        raise InvalidRequest(f"subject_token: chain_too_long: a chain has at most {tokens.MAX_CHAIN} actors")
    grant = Grant(
        chain=chain,
        scope=_granted_scope(request.scope, subject.parent, party, now),
        audience=_granted_audience(request.audience, subject.parent),
        parent_token=subject.parent_token,
        bound_to=possession.bound_to,
        proven_key=possession.proven_key,
        subject=subject.identifier,
    )
    try:
        return services.issue(tenant_id=tenant_id, agent_id=agent.id, grant=grant, actor=actor, now=now)
    except errors.ParentKeyNotProven as error:
        raise InvalidDpopProof("subject_token: key_not_proven: its key must be proven") from error
    except (errors.ScopeNotPermitted, errors.ScopeEmpty) as error:
        raise InvalidScope(error.message) from error
    except (errors.AgentMayNotDelegate, errors.CertificateDoesNotCount) as error:
        raise InvalidRequest(f"actor_token: {error.message}") from error
    except (errors.ParentTokenRejected, errors.ParentTokenMalformed, errors.ParentExceeded) as error:
        raise InvalidRequest(f"subject_token: {error.message}") from error


def _scope(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        scope = tokens.normalised_scope(text)
    except ValueError as error:
        raise InvalidScope("scope: malformed (RFC 6749 3.3)") from error
    if len(scope) > tokens.MAX_SCOPE_LENGTH:
        raise InvalidScope(f"scope: at most {tokens.MAX_SCOPE_LENGTH} characters")
    return scope


def _audience(audiences: Sequence[str], resources: Sequence[str]) -> str | None:
    """The one `aud` that audiences and resources name. Raises: InvalidTarget."""
    for resource in resources:
        _check_resource(resource)
    found = list(dict.fromkeys([*audiences, *resources]))
    if len(found) > 1:
        raise InvalidTarget("A token has one audience: ask for one token each")
    for name in found:
        if len(name) > tokens.MAX_NAME_LENGTH or not is_plain_text(name):
            raise InvalidTarget(f"audience: at most {tokens.MAX_NAME_LENGTH} characters, none of them hidden")
    return found[0] if found else None


def _check_resource(resource: str) -> None:
    """RFC 8707 §2: an absolute URI without a fragment."""
    try:
        parts = urlsplit(resource)
    except ValueError as error:
        raise InvalidTarget("resource: not a URI") from error
    is_uri = resource.isascii() and resource.isprintable() and " " not in resource
    if not is_uri or not parts.scheme or not (parts.netloc or parts.path) or "#" in resource:
        raise InvalidTarget("resource: must be an absolute URI without a fragment")


def _party(tenant_id: UUID, request: ExchangeRequest, possession: Possession, now: datetime) -> Party:
    """The client's agent that the actor token names; another tenant's is as one that does not exist."""
    if request.actor_type == agent_type():
        did = parse_did(request.actor_token)
        is_ours = did is None or did.environment is environments.current()
        agent_id = did.agent_id if did is not None else parse_id(request.actor_token)
    else:
        delegation = _delegation(request.actor_token, "actor_token", now)
        is_ours, agent_id = True, delegation.agent_id
        if delegation.bound_to not in (None, possession.proven_key):
            raise InvalidDpopProof("actor_token: key_not_proven: its key must be proven")
        (standing,) = standings([delegation], now=now)
        if not standing.stands:
            raise InvalidRequest("actor_token: stopped: it, or an agent behind it, counts no more")
    try:
        return authority.party(tenant_id=tenant_id, agent_id=agent_id if is_ours else None)
    except AgentNotFound as error:
        raise InvalidRequest("actor_token: unknown_agent: this client has no such agent") from error


def _subject(tenant_id: UUID, request: ExchangeRequest, now: datetime) -> Subject:
    if request.subject_type != ID_TOKEN:
        parent = _delegation(request.subject_token, "subject_token", now)
        return Subject(parent.chain, parent=parent, parent_token=request.subject_token)
    try:
        human = issuers.verify_id_token(tenant_id=tenant_id, token=request.subject_token, now=now)
        return Subject((ChainActor(human.name, ChainActorType.HUMAN),), human.identifier)
    except IdTokenRefused as refused:
        raise InvalidRequest(f"subject_token: {refused.fault}") from refused
    except ValueError as error:
        raise InvalidRequest("subject_token: invalid_subject") from error


def _delegation(token: str, parameter: str, now: datetime) -> Delegation:
    """The delegation of a valid token of the current environment. Raises: InvalidRequest with a reason."""
    found = services.verify(token=token, now=now)
    if found.delegation is None or found.delegation.environment != environments.current().value:
        raise InvalidRequest(f"{parameter}: {found.reason or errors.RejectionReason.UNKNOWN_KEY}")
    return found.delegation


def _link(chain: Chain, agent: Agent) -> ChainActor:
    """The agent as the chain's next actor: an agent, or one below an agent."""
    if any(one.sub == agent.did for one in chain):
        raise InvalidRequest("actor_token: actor_in_chain: the agent is in the chain already")
    has_agent = any(one.type in (ChainActorType.AGENT, ChainActorType.SUB_AGENT) for one in chain)
    return ChainActor(agent.did, ChainActorType.SUB_AGENT if has_agent else ChainActorType.AGENT)


def _granted_scope(asked: str | None, parent: Delegation | None, party: Party, now: datetime) -> str:
    """What is asked, else what of the parent's scope the agent may do. An ID token grants no action."""
    if asked is not None and parent is not None:
        beyond = [name for name in asked.split() if name not in parent.scope.split()]
        if beyond:
            raise InvalidScope(f"The scope exceeds the subject token's: {beyond[0]}")
    if asked is not None or parent is None:
        return asked or ""
    permitted = _permitted(party, now)
    kept = [name for name in parent.scope.split() if permitted is None or name in permitted]
    if parent.scope and not kept:
        raise InvalidScope("The agent may do nothing of the subject token's scope")
    return " ".join(kept)


def _permitted(party: Party, now: datetime) -> Sequence[str] | None:
    try:
        return authority_of(party, now=now).permitted_actions
    except (errors.AgentMayNotDelegate, errors.CertificateDoesNotCount) as error:
        raise InvalidRequest(f"actor_token: {error.message}") from error


def _granted_audience(asked: str | None, parent: Delegation | None) -> str | None:
    bound = parent.audience if parent is not None else None
    if bound is not None and asked not in (None, bound):
        raise InvalidTarget("The audience must be the subject token's")
    return asked or bound
