"""Token exchange (RFC 8693): a human's ID token or a delegation token becomes a delegation to an agent.

There is no impersonation: the actor, an agent of the client's tenant, is always named, and ends the chain.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings

from agents.did import parse_did
from agents.errors import AgentNotFound
from agents.models import Agent
from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.core.identifiers import parse_id
from compliance.core.plain_text import is_plain_text
from compliance.observing.correlation import Correlation
from delegation import errors, services
from delegation.issuers import services as issuers
from delegation.issuers.errors import IdTokenRefused
from delegation.issuing import groups
from delegation.issuing.applications import Grant, TokenApplication
from delegation.issuing.authority import authority_of
from delegation.issuing.decision_rows import AgentAndCertificate
from delegation.issuing.groups import IssuedDelegation, Postponed
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
from delegation.standing import Standing, standings

Found = TypeVar("Found")

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
    """What the subject token says: the start of the chain, and the parent if it is a delegation token."""

    chain: Chain
    identifier: SubjectIdentifier | None = None
    parent: Delegation | None = None


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


@dataclass(frozen=True)
class TokenExchange:
    """A client's request on its way; `possession` is what it proved.

    `ids` are the request's own, since its group has none.
    """

    tenant_id: UUID
    request: ExchangeRequest
    possession: Possession
    actor: Actor
    now: datetime
    ids: Correlation | None


@dataclass(frozen=True)
class ActingAgent:
    """Whom an actor token names; `token` if it is one, not a name."""

    agent_id: UUID
    token: Delegation | None = None


def exchange_each(asked: Sequence[TokenExchange]) -> list[IssuedDelegation | ServiceError | Postponed]:
    """Issue the delegations that clients ask for together, each for at most an hour; the outcomes in order.

    An ID token is postponed: the keys of its issuer may have to be fetched. Raises: Django's errors; then
    nothing is stored.
    """
    together = [one for one in asked if one.request.subject_type != ID_TOKEN]
    applications = _applications(together)
    sound = [one for one in applications if isinstance(one, TokenApplication)]
    issued = iter(groups.issue_each(sound) if sound else [])
    found = iter([next(issued) if isinstance(one, TokenApplication) else one for one in applications])
    outcomes = [Postponed() if one.request.subject_type == ID_TOKEN else next(found) for one in asked]
    return [_as_oauth(one) if isinstance(one, ServiceError) else one for one in outcomes]


def exchange(asked: TokenExchange) -> IssuedDelegation | ServiceError:
    """The outcome of one request, which may wait for its agent, and fetch the keys of an ID token's issuer.

    Don't call it inside a transaction: there may be a network call. Raises: Django's errors.
    """
    (application,) = _applications([asked])
    if isinstance(application, ServiceError):
        return _as_oauth(application)
    try:
        return groups.issue_alone(application)
    except ServiceError as error:
        return _as_oauth(error)


def _as_oauth(error: ServiceError) -> ServiceError:
    """What the token endpoint says instead of an error of issuing."""
    match error:
        case AgentNotFound():
            return InvalidRequest("actor_token: unknown_agent: this client has no such agent")
        case errors.ParentKeyNotProven():
            return InvalidDpopProof("subject_token: key_not_proven: its key must be proven")
        case errors.ScopeNotPermitted() | errors.ScopeEmpty():
            return InvalidScope(error.message)
        case errors.AgentMayNotDelegate() | errors.CertificateDoesNotCount():
            return InvalidRequest(f"actor_token: {error.message}")
        case errors.ParentScopeExceeded():
            return InvalidScope(f"subject_token: {error.message}")
        case errors.ParentAudienceExceeded():
            return InvalidTarget(f"subject_token: {error.message}")
        case errors.ParentTokenRejected() | errors.ParentTokenMalformed() | errors.ParentExceeded():
            return InvalidRequest(f"subject_token: {error.message}")
    return error


def _applications(asked: Sequence[TokenExchange]) -> list[TokenApplication | ServiceError]:
    """What each request asks for, in order, or why its tokens do not count; one statement for all of them."""
    actors = [_caught(_actor, one) for one in asked]
    named = [one.token for one in actors if isinstance(one, ActingAgent) and one.token is not None]
    found = iter(standings(named, now=max(one.now for one in asked)) if named else [])
    return [
        actor
        if isinstance(actor, ServiceError)
        else _caught(_application, one, actor, next(found) if actor.token is not None else None)
        for one, actor in zip(asked, actors, strict=True)
    ]


def _caught(step: Callable[..., Found], *args: object) -> Found | ServiceError:
    """What a step returns, or the error that it raises."""
    try:
        return step(*args)
    except ServiceError as error:
        return error


def _application(asked: TokenExchange, actor: ActingAgent, standing: Standing | None) -> TokenApplication:
    """What one request asks for; `standing` is that of the actor's token, if any. Raises: ServiceError."""
    if standing is not None and not standing.stands:
        raise InvalidRequest("actor_token: stopped: it, or an agent behind it, counts no more")
    subject = _subject(asked)

    def grant_to(delegator: AgentAndCertificate) -> Grant:
        chain = (*subject.chain, _link(subject.chain, delegator.agent))
        if len(chain) > tokens.MAX_CHAIN:
            limit = f"a chain has at most {tokens.MAX_CHAIN} actors"
            raise InvalidRequest(f"subject_token: chain_too_long: {limit}")
        return Grant(
            chain=chain,
            scope=_granted_scope(asked.request.scope, subject.parent, delegator, asked.now),
            audience=asked.request.audience,
            bound_to=asked.possession.bound_to,
            proven_key=asked.possession.proven_key,
            subject=subject.identifier,
        )

    return TokenApplication(
        tenant_id=asked.tenant_id,
        agent_id=actor.agent_id,
        grant_to=grant_to,
        parent=subject.parent,
        actor=asked.actor,
        now=asked.now,
        ids=asked.ids,
    )


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


def _actor(asked: TokenExchange) -> ActingAgent:
    """Whom the actor token names, even if it stands no more. Raises: OAuthError, AgentNotFound."""
    request = asked.request
    if request.actor_type == agent_type():
        did = parse_did(request.actor_token)
        is_ours = did is None or did.environment is environments.current()
        agent_id = parse_id(request.actor_token) if did is None else did.agent_id
        if agent_id is None or not is_ours:
            raise AgentNotFound()
        return ActingAgent(agent_id)
    delegation = _delegation(request.actor_token, "actor_token", asked.now)
    if delegation.bound_to not in (None, asked.possession.proven_key):
        raise InvalidDpopProof("actor_token: key_not_proven: its key must be proven")
    return ActingAgent(delegation.agent_id, delegation)


def _subject(asked: TokenExchange) -> Subject:
    token = asked.request.subject_token
    if asked.request.subject_type != ID_TOKEN:
        parent = _delegation(token, "subject_token", asked.now)
        return Subject(parent.chain, parent=parent)
    try:
        human = issuers.verify_id_token(tenant_id=asked.tenant_id, token=token, now=asked.now)
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


def _granted_scope(
    asked: str | None, parent: Delegation | None, delegator: AgentAndCertificate, now: datetime
) -> str:
    """Return the scope asked for; if omitted, the part of the parent's scope that the agent is permitted.

    Without a parent (an ID token) an omitted scope is empty. Raises: InvalidScope.
    """
    if asked is not None or parent is None:
        return asked or ""
    permitted = _permitted(delegator, now)
    kept = [name for name in parent.scope.split() if permitted is None or name in permitted]
    if parent.scope and not kept:
        raise InvalidScope("The agent may do nothing of the subject token's scope")
    return " ".join(kept)


def _permitted(delegator: AgentAndCertificate, now: datetime) -> Sequence[str] | None:
    try:
        return authority_of(delegator, now=now).permitted_actions
    except (errors.AgentMayNotDelegate, errors.CertificateDoesNotCount) as error:
        raise InvalidRequest(f"actor_token: {error.message}") from error
