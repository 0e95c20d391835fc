"""The endpoints that issue and verify delegation tokens, as both entrances serve them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from agents.errors import AgentNotFound
from auditlog.vocabulary import Actor
from compliance.api.endpoint import Deferred, EndpointRequest, ThreadEndpoint
from compliance.api.rest.permissions import Scope
from compliance.api.rest.throttling import KeyThrottle, PublicThrottle
from compliance.api.rest.views import checked
from compliance.core.errors import Forbidden, ServiceError
from compliance.core.identifiers import parse_id
from compliance.observing import correlation
from compliance.observing.correlation import Correlation
from compliance.stores import sql
from delegation import proofs, serializers, services
from delegation.issuing import groups
from delegation.issuing.applications import TokenApplication
from delegation.issuing.groups import IssuedDelegation, Postponed
from delegation.services import TokenVerification


class VerificationQuestion(NamedTuple):
    token: str
    audience: str | None
    now: datetime


class VerifyDelegation(ThreadEndpoint[VerificationQuestion, TokenVerification]):
    """`POST /v1/delegation/verify`: a token names its environment itself, by its key."""

    method, path, allow = "POST", "/v1/delegation/verify", "POST"
    bucket = PublicThrottle.bucket

    def read(self, request: EndpointRequest) -> VerificationQuestion:
        body = checked(serializers.VerifyDelegationSerializer, request.body)
        return VerificationQuestion(body["token"], body.get("audience"), request.received_at)

    def work(self, questions: Sequence[VerificationQuestion]) -> Sequence[TokenVerification | ServiceError]:
        return [_verdict(asked) for asked in questions]

    def show(self, outcome: TokenVerification) -> Mapping[str, Any]:
        return {"data": serializers.shown_verification(outcome)}


def _verdict(asked: VerificationQuestion) -> TokenVerification | ServiceError:
    try:
        return services.verify_for(token=asked.token, audience=asked.audience, now=asked.now)
    except ServiceError as error:
        return error


class IssueRequest(NamedTuple):
    """A request for a token: `body` as its serializer validated it, `proof` an unchecked `DPoP` header.

    `ids` are the request's own, since its group has none.
    """

    tenant_id: UUID
    key_id: UUID
    agent_id: UUID
    path: str
    body: dict[str, Any]
    proof: str | None
    now: datetime
    proven_key: str | None = None
    ids: Correlation | None = None


class IssueDelegation(ThreadEndpoint[IssueRequest, IssuedDelegation]):
    """`POST /v1/agents/{id}/delegation`: tokens that are asked for together share one commit."""

    method, path, suffix, allow = "POST", "/v1/agents/", "/delegation", "POST"
    scope, bucket = Scope.DELEGATIONS_ISSUE, KeyThrottle.bucket
    largest_group, longest_queue = 32, 500

    def read(self, request: EndpointRequest) -> IssueRequest:
        if request.tenant_id is None or request.key_id is None:
            raise Forbidden()
        body = checked(serializers.IssueDelegationSerializer, request.body)
        agent_id = parse_id(request.parameter)
        if agent_id is None:
            raise AgentNotFound()
        return IssueRequest(
            tenant_id=request.tenant_id,
            key_id=request.key_id,
            agent_id=agent_id,
            path=f"{self.path}{request.parameter}{self.suffix}",
            body=body,
            proof=request.headers.get("dpop"),
            now=request.received_at,
            ids=correlation.current(),
        )

    def proven(self, question: IssueRequest) -> IssueRequest:
        """The question with its proof checked and used up. Raises: as `proofs.proven_key`."""
        found = proofs.proven_key(proof=question.proof, path=question.path, now=question.now)
        return question._replace(proof=None, proven_key=found)

    def work(
        self, questions: Sequence[IssueRequest]
    ) -> Sequence[IssuedDelegation | ServiceError | Deferred[IssuedDelegation]]:
        asked = _applications(questions)
        sound = [one for one in asked if isinstance(one, TokenApplication)]
        outcomes = iter(groups.issue_each(sound) if sound else [])
        return [one if isinstance(one, ServiceError) else _outcome(one, next(outcomes)) for one in asked]

    def show(self, outcome: IssuedDelegation) -> Mapping[str, Any]:
        return {"data": serializers.shown_issued(outcome)}

    def warm(self) -> None:
        """Connect the thread to the database."""
        sql.reach()


def _applications(questions: Sequence[IssueRequest]) -> list[TokenApplication | ServiceError]:
    """What each question asks for, or why its proof or its parent token does not count."""
    keys = proofs.proven_keys([(one.proof, one.path) for one in questions], now=questions[-1].now)
    return [
        key if isinstance(key, ServiceError) else _application(asked, asked.proven_key or key)
        for asked, key in zip(questions, keys, strict=True)
    ]


def _application(asked: IssueRequest, proven_key: str | None) -> TokenApplication | ServiceError:
    try:
        parent = services.read_parent(token=asked.body.get("parent_token"), now=asked.now)
    except ServiceError as error:
        return error
    grant = serializers.grant_from(asked.body, proven_key=proven_key)
    return TokenApplication(
        tenant_id=asked.tenant_id,
        agent_id=asked.agent_id,
        grant_to=lambda _: grant,
        parent=parent,
        actor=Actor.api_key(asked.key_id),
        now=asked.now,
        ids=asked.ids,
    )


def _outcome(
    asked: TokenApplication, found: groups.Outcome
) -> IssuedDelegation | ServiceError | Deferred[IssuedDelegation]:
    return Deferred(partial(_alone, asked)) if isinstance(found, Postponed) else found


def _alone(asked: TokenApplication) -> IssuedDelegation | ServiceError:
    try:
        return groups.issue_alone(asked)
    except ServiceError as error:
        return error


VERIFY_DELEGATION = VerifyDelegation()
ISSUE_DELEGATION = IssueDelegation()
