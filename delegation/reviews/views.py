"""`/v1/access-reviews`: who decides whether agents still need what they may do; `/v1/owners/replace`."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from agents.errors import AgentNotFound
from agents.serializers import OwnersReplacedSerializer, ReplaceOwnerSerializer
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope, require_scope
from compliance.api.pagination import newest_first, ok
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import enveloped
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from compliance.core.clock import now
from compliance.core.identifiers import parse_id
from delegation.reviews import records, services
from delegation.reviews.facts import items_shown
from delegation.reviews.models import (
    AccessReview,
    AccessReviewQuerySet,
    AlreadyDecided,
    ItemNotFound,
    NothingToReduce,
    NothingToReview,
    ReviewNotFound,
    ReviewUnfinished,
)
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

    @operation(
        "openAccessReview",
        "Open a review of what agents may do",
        Scope.AGENTS_WRITE,
        AccessReviewSerializer,
        status=201,
        description="Of those that match now and are not retired. Their owners and the reviewer are told.",
        request=OpenAccessReviewSerializer,
        examples=[OPENING],
        repeats=True,
        e404=AgentNotFound.message,
        e422=NothingToReview.message,
    )
    def create(self, request: ApiRequest) -> Response:
        given = validated(OpenAccessReviewSerializer, request)
        review = services.open_review(**{"every": None, **given}, **caller_of(request))
        return ok(_shown(request, review.id), status=201)

    @listing(
        "listAccessReviews", "List access reviews, newest first", Scope.AGENTS_READ, AccessReviewSerializer
    )
    def list(self, request: ApiRequest) -> Response:
        return newest_first(
            _own(request).with_undecided(), request, AccessReviewSerializer.all_of, field="started_at"
        )

    @operation(
        "getAccessReview", "Fetch an access review", Scope.AGENTS_READ, AccessReviewSerializer, e404=NOT_FOUND
    )
    def retrieve(self, request: ApiRequest, review_id: str) -> Response:
        return ok(_shown(request, review_id))

    @operation(
        "updateAccessReview",
        "Repeat an access review each quarter, or no longer",
        Scope.AGENTS_WRITE,
        AccessReviewSerializer,
        request=AccessReviewChangesSerializer,
        e404=NOT_FOUND,
    )
    def partial_update(self, request: ApiRequest, review_id: str) -> Response:
        every = validated(AccessReviewChangesSerializer, request)["every"]
        services.schedule(review_id=review_id, every=every, **caller_of(request))
        return ok(_shown(request, review_id))

    @listing(
        "listAccessReviewItems",
        "List the agents of an access review",
        Scope.AGENTS_READ,
        AccessReviewItemSerializer,
        description=ALSO_EVENTS,
        e404=NOT_FOUND,
    )
    def items(self, request: ApiRequest, review_id: str) -> Response:
        rows = _find_with_usage(request, review_id).rows
        return newest_first(rows, request, _items_shown, field="opened_at")

    @operation(
        "decideAccessReviewItem",
        "Decide on an agent of an access review",
        Scope.CERTIFICATES_REVOKE,
        AccessReviewItemSerializer,
        description=DECIDE_TEXT,
        request=AccessReviewDecisionSerializer,
        examples=[REDUCING],
        e404=ItemNotFound.message,
        e409=AlreadyDecided.message,
        e422=NothingToReduce.message,
    )
    def decide(self, request: ApiRequest, review_id: str, agent_id: str) -> Response:
        _find_with_usage(request, review_id)
        given = validated(AccessReviewDecisionSerializer, request)
        asked: dict[str, Any] = {"review_id": review_id, "agent_ids": [parse_id(agent_id)]}
        return ok(_items_shown(services.decide(**asked, **given, **caller_of(request)))[0])

    @operation(
        "decideAccessReviewItems",
        "Decide on many agents of an access review",
        Scope.CERTIFICATES_REVOKE,
        enveloped(AccessReviewItemSerializer, many=True),
        description=(
            "All or none, but for agents that are decided on or have nothing to reduce: they are left, as "
            f"the answer shows. More than ten are carried out after the answer. {ALSO_EVENTS}"
        ),
        request=BulkAccessReviewDecisionSerializer,
        e404=ItemNotFound.message,
    )
    def decide_all(self, request: ApiRequest, review_id: str) -> Response:
        _find_with_usage(request, review_id)
        given = validated(BulkAccessReviewDecisionSerializer, request)
        made = services.decide(review_id=review_id, leave=True, **given, **caller_of(request))
        return ok(_items_shown(made))

    @operation(
        "getAccessReviewRecord",
        "Fetch the signed record of a finished access review",
        Scope.AGENTS_READ,
        AccessReviewRecordSerializer,
        description="`root` is the Merkle root of the lines, as of a halt receipt. It has no addresses.",
        e404=NOT_FOUND,
        e422=ReviewUnfinished.message,
        e503="KMS signing service unavailable",
    )
    def record(self, request: ApiRequest, review_id: str) -> Response:
        record, lines = records.record_of(_own(request).find(review_id), now=now())
        return ok({"record": record, "lines": lines})


class OwnerViewSet(ApiViewSet):
    """The people who answer for the tenant's agents, and review them."""

    schema_tag = "Agents"

    @operation(
        "replaceOwner",
        "Put another person in an owner's place",
        Scope.AGENTS_WRITE,
        OwnersReplacedSerializer,
        description=(
            "Replaces the person with the e-mail address `from`, in any case, as owner and backup owner of "
            "all agents of the tenant, retired ones too, and of its blueprints, and in access reviews; each "
            "change is audited. Links for approvals that went to the person before decide nothing any more."
        ),
        request=ReplaceOwnerSerializer,
        examples=[REPLACEMENT_EXAMPLE],
    )
    def replace(self, request: ApiRequest) -> Response:
        given = validated(ReplaceOwnerSerializer, request)
        to = given["to"]
        count = services.replace_person(
            email=given["from"], name=to["name"], new_email=to["email"], **caller_of(request)
        )
        return ok({"agents": count})


def _own(request: ApiRequest) -> AccessReviewQuerySet:
    return AccessReview.objects.for_tenant(request.auth.tenant_id)


def _find_with_usage(request: ApiRequest, review_id: str) -> AccessReview:
    """Return a review whose items show what agents use, which takes `events:read` too."""
    review = _own(request).find(review_id)
    require_scope(request.auth, Scope.EVENTS_READ)
    return review


def _shown(request: ApiRequest, review_id: Any) -> Any:
    return AccessReviewSerializer(_own(request).with_undecided().find(review_id)).data


def _items_shown(items: Any) -> Any:
    return AccessReviewItemSerializer(items_shown(items, now()), many=True).data
