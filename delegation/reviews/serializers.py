"""Read and show reviews of access in the API."""

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample
from rest_framework import serializers

from agents.blueprints.serializers import MOST_IDS
from agents.serializers import MAX_ACTION_LENGTH, MAX_PERMITTED_ACTIONS, email_field
from compliance.api.rest.fields import (
    ChangesSerializer,
    ClosedSerializer,
    IdField,
    RowSerializer,
    StrictCharField,
    StrictDateTimeField,
)
from delegation.reviews.models import (
    MOST_NOTE,
    QUARTER,
    AccessReview,
    AccessReviewDecision,
    AccessReviewState,
)
from delegation.stops.serializers import MatchSerializer
from events.figures.views import NameUseSerializer


class OpenAccessReviewSerializer(ClosedSerializer):
    """`POST /v1/access-reviews`."""

    match = MatchSerializer()
    reviewer = email_field()
    due_at = StrictDateTimeField(help_text="Later than now.")
    every = serializers.ChoiceField(
        [QUARTER], required=False, allow_null=True, help_text="Opens the like at the start of each quarter."
    )


class AccessReviewChangesSerializer(ChangesSerializer):
    """`PATCH /v1/access-reviews/{id}`."""

    every = serializers.ChoiceField([QUARTER], required=False, allow_null=True)


class DecisionSerializer(ClosedSerializer):
    decision = serializers.ChoiceField(AccessReviewDecision.choices)
    note = StrictCharField(max_length=MOST_NOTE, required=False, allow_blank=True, help_text="Not public.")


class BulkAccessReviewDecisionSerializer(DecisionSerializer):
    """A decision on many agents of a review."""

    agent_ids = serializers.ListField(child=IdField(), min_length=1, max_length=MOST_IDS)


class AccessReviewDecisionSerializer(DecisionSerializer):
    """A decision on an agent of a review."""

    actions = serializers.ListField(
        child=StrictCharField(max_length=MAX_ACTION_LENGTH),
        min_length=1,
        max_length=MAX_PERMITTED_ACTIONS,
        required=False,
        help_text="Permitted actions that `reduce` removes; exactly the unused without them.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "actions" in attrs and attrs["decision"] != AccessReviewDecision.REDUCE:
            raise serializers.ValidationError({"actions": ["Only of `reduce`."]})
        return attrs


class AccessReviewSerializer(RowSerializer[AccessReview]):
    """A review of access."""

    match = serializers.DictField(help_text="As it was asked for.")
    agents = serializers.IntegerField(source="agent_count")
    state = serializers.ChoiceField(AccessReviewState.choices)
    every = serializers.ChoiceField([QUARTER], allow_null=True)
    undecided = serializers.IntegerField(
        help_text="Agents that wait for a decision, or for another one where it was refused (`problem`)."
    )
    started_by = serializers.CharField(help_text="The actor, as the audit log has them.")

    class Meta:
        model = AccessReview
        fields: tuple[str, ...] = (
            *("id", "match", "reviewer", "state", "agents", "undecided", "due_at", "every", "next_at"),
            *("started_by", "started_at", "overdue_at", "ended_at"),
        )


class AccessReviewItemSerializer(serializers.Serializer[Any]):
    """An agent of a review: as it was decided on, or as it is now."""

    agent_id = serializers.UUIDField()
    name = serializers.CharField()
    status = serializers.CharField()
    owner = serializers.CharField(allow_null=True)
    permitted_actions = serializers.ListField(child=serializers.CharField(), allow_null=True)
    used = NameUseSerializer(many=True, help_text="In 90 days.")
    unused = serializers.ListField(child=serializers.CharField())
    refused = serializers.ListField(child=serializers.CharField())
    is_complete = serializers.BooleanField(help_text="As of `GET /v1/agents/{id}/usage`.")
    last_active_at = serializers.DateTimeField(allow_null=True)
    risk_score = serializers.FloatField(help_text="Of 30 days.")
    high_events = serializers.IntegerField(help_text="In 30 days.")
    incidents = serializers.IntegerField()
    decision = serializers.ChoiceField(["", *AccessReviewDecision.values], help_text="Empty until made.")
    removed_actions = serializers.ListField(source="removed", child=serializers.CharField())
    note = serializers.CharField()
    decided_by = serializers.CharField()
    decided_at = serializers.DateTimeField(allow_null=True)
    applied_at = serializers.DateTimeField(allow_null=True, help_text="When it was carried out.")
    problem = serializers.CharField(help_text="Why it was not; it may then be decided anew.")


class AccessReviewLineSerializer(serializers.Serializer[Any]):
    """A line of a review's record."""

    agent_id = serializers.UUIDField()
    decision = serializers.ChoiceField(AccessReviewDecision.choices)
    removed_actions = serializers.ListField(child=serializers.CharField())
    decided_by = serializers.CharField()
    decided_at = serializers.DateTimeField()
    applied_at = serializers.DateTimeField()


class AccessReviewRecordSerializer(serializers.Serializer[Any]):
    """A review's signed record, and the lines under its Merkle root."""

    record = serializers.CharField(help_text="A compact JWS of the type `access-review+jwt`.")
    lines = AccessReviewLineSerializer(many=True)


OPENING: Final = OpenApiExample(
    "All agents, each quarter",
    value={
        "match": {"all": True},
        "reviewer": "kim.berg@example.com",
        "due_at": "2026-12-20T12:00:00Z",
        "every": QUARTER,
    },
    request_only=True,
)
REDUCING: Final = OpenApiExample("Exactly the unused", value={"decision": "reduce"}, request_only=True)
