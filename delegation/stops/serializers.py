"""Read and show stops in the API."""

from typing import Any, ClassVar

import msgspec
from cryptography.x509 import ReasonFlags
from rest_framework import serializers

from agents.blueprints.serializers import MOST_IDS
from agents.models import MAX_EMAIL_LENGTH, Agent, AgentStatus
from certificates.pki.reasons import NOT_BY_HAND_CODES
from certificates.querysets import HOLD
from compliance.api.rest.fields import (
    ClosedSerializer,
    IdField,
    RowSerializer,
    StrictBooleanField,
    StrictCharField,
    TrueField,
)
from delegation.stops.models import KindStop, StopOutcome, StopState
from delegation.stops.services import MATCHERS

CODES = [code.value for code in ReasonFlags if code not in NOT_BY_HAND_CODES]
SAMPLE = 10


class MatchSerializer(ClosedSerializer):
    """Which agents: exactly one member."""

    bounds: ClassVar[dict[str, Any]] = {"minProperties": 1, "maxProperties": 1, **ClosedSerializer.bounds}

    model_hash = StrictCharField(max_length=512, required=False)
    agent_ids = serializers.ListField(
        child=IdField(), min_length=1, max_length=MOST_IDS, required=False, help_text="404 if one is unknown."
    )
    blueprint_id = IdField(required=False, help_text="404 if it is unknown.")
    owner = StrictCharField(
        max_length=MAX_EMAIL_LENGTH, required=False, help_text="The owner's address, in any case."
    )
    all = TrueField(required=False, help_text="Every agent of the tenant.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) != 1:
            raise serializers.ValidationError(f"Must have exactly one of {', '.join(MATCHERS)}.")
        found: dict[str, Any] = msgspec.to_builtins(dict(attrs))  # ids as text, to be stored
        return found


class BeginStopSerializer(ClosedSerializer):
    """`POST /v1/stops`."""

    match = MatchSerializer()
    reason = StrictCharField(max_length=500, help_text="Kept in the audit log and the receipt; not public.")
    reason_code = serializers.ChoiceField(
        [code for code in CODES if code != HOLD],
        required=False,
        help_text="Of RFC 5280, public with what `revoke` ends. Of a hold the stop and its receipt have it; "
        "lists say `certificateHold`, as both do without it.",
    )
    revoke = StrictBooleanField(default=False, help_text="Revoke for good instead of putting on hold.")
    dry_run = StrictBooleanField(default=False, help_text="Only answer how many match, and some of them.")

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        return {"reason_code": ReasonFlags.unspecified.value if data["revoke"] else HOLD, **data}


class StopReleaseSerializer(serializers.Serializer[Any]):
    """`POST /v1/stops/{id}/release`."""

    reason = StrictCharField(max_length=500)


class StopSerializer(RowSerializer[KindStop]):
    """A stop, and how far it is."""

    match = serializers.DictField(
        help_text="As it was asked for; of an owner without the address, which the audit log has."
    )
    reason_code = serializers.CharField()
    state = serializers.ChoiceField(
        StopState.choices, help_text="`running` and `releasing` end by themselves, whatever dies meanwhile."
    )
    matched = serializers.IntegerField(help_text="Agents that matched when it began.")
    skipped = serializers.IntegerField(help_text="Agents stopped or retired already.")
    failed = serializers.IntegerField(help_text="Agents that could not be stopped: stop them again.")
    started_by = serializers.CharField(help_text="The actor, as the audit log has them.")

    class Meta:
        model = KindStop
        fields: tuple[str, ...] = (
            *("id", "match", "revoke", "reason", "reason_code", "state", "matched", "stopped", "skipped"),
            *("failed", "released", "started_by", "started_at", "ended_at", "release_reason", "released_by"),
            "released_at",
        )


class MatchedAgentSerializer(RowSerializer[Agent]):
    """An agent that a stop would match."""

    status = serializers.ChoiceField(AgentStatus.choices)

    class Meta:
        model = Agent
        fields = ("id", "name", "status")


class BegunStopSerializer(StopSerializer):
    """The answer to `POST /v1/stops`."""

    id = serializers.UUIDField(allow_null=True, help_text="null of a dry run")
    state = serializers.ChoiceField(StopState.choices, allow_null=True, help_text="null of a dry run")
    dry_run = serializers.BooleanField()
    sample = MatchedAgentSerializer(many=True, help_text=f"Of a dry run: at most {SAMPLE} that match.")

    class Meta(StopSerializer.Meta):
        fields = (*StopSerializer.Meta.fields, "dry_run", "sample")


class HaltLineSerializer(serializers.Serializer[Any]):
    """A line of a halt receipt."""

    agent_id = serializers.UUIDField()
    serial = serializers.CharField(allow_null=True, help_text="Of the certificate that the stop ended.")
    stopped_at = serializers.DateTimeField(allow_null=True)
    outcome = serializers.ChoiceField([one for one in StopOutcome.values if one != StopOutcome.PENDING])


class HaltReceiptSerializer(serializers.Serializer[Any]):
    """A halt receipt and the lines under its Merkle root."""

    receipt = serializers.CharField(help_text="A compact JWS of the type `halt+jwt`.")
    lines = HaltLineSerializer(many=True)
