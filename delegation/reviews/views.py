"""`/v1/access-reviews`: who decides whether agents still need what they may do; `/v1/owners/replace`."""

from typing import Any, ClassVar, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response

from agents.errors import AgentNotFound
from agents.serializers import OwnersReplacedSerializer, ReplaceOwnerSerializer
from agents.views import AGENT_ID
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope, require_scope
from compliance.api.idempotency import idempotent
from compliance.api.pagination import newest_first, ok
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import BEFORE, IDEMPOTENCY_KEY, KEYED, LIMIT, enveloped, errors, paged
from compliance.api.rest.views import ApiViewSet, validated
from compliance.core.clock import now
from compliance.core.identifiers import parse_id
from delegation.reviews import records, services
from delegation.reviews.errors import (
    AlreadyDecided,
    ItemNotFound,
    NothingToReduce,
    NothingToReview,
    ReviewNotFound,
    ReviewUnfinished,
)
from delegation.reviews.facts import items_shown
from delegation.reviews.models import AccessReview
from delegation.reviews.serializers import (
    OPENING,
    REDUCING,
    AccessReviewChangesSerializer,
    AccessReviewDecisionSerializer,
    AccessReviewItemSerializer,
    AccessReviewRecordSerializer,
    AccessReviewSerializer,
    BulkAccessReviewDecisionSerializer,
    OpenAccessReviewSerializer,
)

REVIEW_ID: Final = OpenApiParameter("review_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)
ALSO_EVENTS: Final = "The answer shows what agents use, so it takes the scope `events:read` too."
DECIDE_TEXT: Final = (
    "`keep` changes nothing. `reduce` removes permitted actions, exactly those unused in 90 days or "
    "`actions`, and renews the certificate with the narrower scope. `suspend` and `retire` do as those of "
    "agents. `applied_at` is null until it is carried out, which goes on by itself; the last ends the "
    "review. An item with a `problem` may be decided anew. " + ALSO_EVENTS
)
NOT_FOUND: Final = ReviewNotFound.message
REPLACEMENT_EXAMPLE = OpenApiExample(
    "Somebody leaves",
    request_only=True,
    value={"from": "kim.berg@example.com", "to": {"name": "Lee Sand", "email": "lee.sand@example.com"}},
)


class AccessReviewViewSet(ApiViewSet):
    """The tenant's reviews of access."""

    schema_tag = "Access reviews"
    required_scopes: ClassVar = {
        **dict.fromkeys(("list", "retrieve", "items", "record"), Scope.AGENTS_READ),
        **dict.fromkeys(("create", "partial_update"), Scope.AGENTS_WRITE),
        **dict.fromkeys(("decide", "decide_all"), Scope.CERTIFICATES_REVOKE),
    }

    @extend_schema(
        operation_id="openAccessReview",
        summary="Open a review of what agents may do",
        description="Of those that match now and are not retired. Their owners and the reviewer are told.",
        parameters=[IDEMPOTENCY_KEY],
        request=OpenAccessReviewSerializer,
        examples=[OPENING],
        responses={
            201: enveloped(AccessReviewSerializer),
            **errors(*KEYED, 409, e404=AgentNotFound.message, e422=NothingToReview.message),
        },
    )
    @idempotent
    def create(self, request: ApiRequest) -> Response:
        given = validated(OpenAccessReviewSerializer, request)
        review = services.open_review(**{"every": None, **given}, **caller_of(request))
        return ok(_shown(request, review.id), status=201)

    @extend_schema(
        operation_id="listAccessReviews",
        summary="List access reviews, newest first",
        parameters=[BEFORE, LIMIT],
        responses={200: paged(AccessReviewSerializer, tells_next=True), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        own = AccessReview.objects.for_tenant(request.auth.tenant_id).with_undecided()
        return newest_first(own, request, AccessReviewSerializer.all_of, field="started_at")

    @extend_schema(
        operation_id="getAccessReview",
        summary="Fetch an access review",
        parameters=[REVIEW_ID],
        responses={200: enveloped(AccessReviewSerializer), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def retrieve(self, request: ApiRequest, review_id: str) -> Response:
        return ok(_shown(request, review_id))

    @extend_schema(
        operation_id="updateAccessReview",
        summary="Repeat an access review each quarter, or no longer",
        parameters=[REVIEW_ID],
        request=AccessReviewChangesSerializer,
        responses={200: enveloped(AccessReviewSerializer), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def partial_update(self, request: ApiRequest, review_id: str) -> Response:
        every = validated(AccessReviewChangesSerializer, request)["every"]
        services.schedule(review_id=review_id, every=every, **caller_of(request))
        return ok(_shown(request, review_id))

    @extend_schema(
        operation_id="listAccessReviewItems",
        summary="List the agents of an access review",
        description=ALSO_EVENTS,
        parameters=[REVIEW_ID, BEFORE, LIMIT],
        responses={200: paged(AccessReviewItemSerializer, tells_next=True), **errors(*KEYED, e404=NOT_FOUND)},
    )
    def items(self, request: ApiRequest, review_id: str) -> Response:
        return newest_first(
            services.items_of(_find_with_usage(request, review_id)),
            request,
            lambda rows: AccessReviewItemSerializer(items_shown(rows, now()), many=True).data,
            field="opened_at",
        )

    @extend_schema(
        operation_id="decideAccessReviewItem",
        summary="Decide on an agent of an access review",
        description=DECIDE_TEXT,
        parameters=[REVIEW_ID, AGENT_ID],
        request=AccessReviewDecisionSerializer,
        examples=[REDUCING],
        responses={
            200: enveloped(AccessReviewItemSerializer),
            **errors(
                *KEYED, e404=ItemNotFound.message, e409=AlreadyDecided.message, e422=NothingToReduce.message
            ),
        },
    )
    def decide(self, request: ApiRequest, review_id: str, agent_id: str) -> Response:
        _find_with_usage(request, review_id)
        given = validated(AccessReviewDecisionSerializer, request)
        asked: dict[str, Any] = {"review_id": review_id, "agent_ids": [parse_id(agent_id)]}
        made = services.decide(**asked, **given, **caller_of(request))
        return ok(AccessReviewItemSerializer(items_shown(made, now())[0]).data)

    @extend_schema(
        operation_id="decideAccessReviewItems",
        summary="Decide on many agents of an access review",
        description=(
            "All or none, but for agents that are decided on or have nothing to reduce: they are left, as "
            f"the answer shows. More than ten are carried out after the answer. {ALSO_EVENTS}"
        ),
        parameters=[REVIEW_ID],
        request=BulkAccessReviewDecisionSerializer,
        responses={
            200: enveloped(AccessReviewItemSerializer, many=True),
            **errors(*KEYED, e404=ItemNotFound.message),
        },
    )
    def decide_all(self, request: ApiRequest, review_id: str) -> Response:
        _find_with_usage(request, review_id)
        given = validated(BulkAccessReviewDecisionSerializer, request)
        made = services.decide(review_id=review_id, leave=True, **given, **caller_of(request))
        return ok(AccessReviewItemSerializer(items_shown(made, now()), many=True).data)

    @extend_schema(
        operation_id="getAccessReviewRecord",
        summary="Fetch the signed record of a finished access review",
        description="`root` is the Merkle root of the lines, as of a halt receipt. It has no addresses.",
        parameters=[REVIEW_ID],
        responses={
            200: enveloped(AccessReviewRecordSerializer),
            **errors(
                *KEYED, e404=NOT_FOUND, e422=ReviewUnfinished.message, e503="KMS signing service unavailable"
            ),
        },
    )
    def record(self, request: ApiRequest, review_id: str) -> Response:
        record, lines = records.record_of(_find(request, review_id), now=now())
        return ok({"record": record, "lines": lines})


class OwnerViewSet(ApiViewSet):
    """The people who answer for the tenant's agents, and review them."""

    schema_tag = "Agents"
    required_scopes: ClassVar = {"replace": Scope.AGENTS_WRITE}

    @extend_schema(
        operation_id="replaceOwner",
        summary="Put another person in an owner's place",
        description=(
            "Replaces the person with the e-mail address `from`, in any case, as owner and backup owner of "
            "all agents of the tenant, retired ones too, and of its blueprints, and in access reviews; each "
            "change is audited. Links for approvals that went to the person before decide nothing any more."
        ),
        request=ReplaceOwnerSerializer,
        examples=[REPLACEMENT_EXAMPLE],
        responses={200: enveloped(OwnersReplacedSerializer), **errors(*KEYED)},
    )
    def replace(self, request: ApiRequest) -> Response:
        given = validated(ReplaceOwnerSerializer, request)
        to = given["to"]
        count = services.replace_person(
            email=given["from"], name=to["name"], new_email=to["email"], **caller_of(request)
        )
        return ok({"agents": count})


def _find_with_usage(request: ApiRequest, review_id: Any) -> AccessReview:
    """Return a review whose items show what agents use, which takes `events:read` too."""
    review = _find(request, review_id)
    require_scope(request.auth, Scope.EVENTS_READ)
    return review


def _shown(request: ApiRequest, review_id: Any) -> Any:
    own = AccessReview.objects.for_tenant(request.auth.tenant_id).with_undecided()
    return AccessReviewSerializer(own.find(review_id)).data


def _find(request: ApiRequest, review_id: str) -> AccessReview:
    return AccessReview.objects.for_tenant(request.auth.tenant_id).find(review_id)
