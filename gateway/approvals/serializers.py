"""Read and show approvals in the API."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from agents.models import LONGEST_TTL, SHORTEST_TTL
from compliance.api.rest.fields import ClosedSerializer, IdField, RowSerializer, StrictIntegerField
from compliance.core.json_values import MAX_OCTETS, octets_of
from events.models import ActionType
from gateway.approvals.models import Approval, ApprovalStatus
from gateway.serializers import RouteActionField

DEFAULT_TTL = 3600


class OpenApprovalSerializer(ClosedSerializer):
    """`POST /v1/approvals`."""

    agent_id = IdField()
    action = RouteActionField()
    action_type = serializers.ChoiceField(ActionType.choices, required=False, allow_null=True)
    details = serializers.DictField(required=False, help_text="At most 64 KiB as JSON.")
    ttl_seconds = StrictIntegerField(
        min_value=SHORTEST_TTL,
        max_value=LONGEST_TTL,
        required=False,
        help_text=f"{DEFAULT_TTL} when omitted. The decision and the use must both fall within it.",
    )

    def validate_details(self, details: dict[str, Any]) -> dict[str, Any]:
        if octets_of(details) > MAX_OCTETS:
            raise serializers.ValidationError(f"Must take at most {MAX_OCTETS} octets as JSON.")
        return details


class ApprovalSerializer(RowSerializer[Approval]):
    """An approval of a list."""

    action = serializers.CharField()
    details = serializers.DictField()
    reasons = serializers.ListField(
        child=serializers.DictField(), help_text="Those of the score, as of an event's."
    )
    status = serializers.ChoiceField(ApprovalStatus.choices)
    action_hash = serializers.CharField(
        help_text='SHA-256, in hex, of the RFC 8785 form of `{"action": …, "details": …}`.'
    )
    decided_by = serializers.CharField(
        allow_null=True,
        help_text="The person, as the audit log has them: `person:<id>`, or `owner:<e-mail>` by a link.",
    )

    class Meta:
        model = Approval
        fields: list[str] = [
            *("id", "agent_id", "agent_name", "action", "action_type", "details", "action_hash"),
            *("risk_score", "risk_band", "reasons", "decision_id", "status", "requested_at", "expires_at"),
            *("decided_at", "decided_by", "note", "used_at"),
        ]


class ApprovalDetailSerializer(ApprovalSerializer):
    """An approval with its receipt."""

    receipt = serializers.CharField(
        allow_null=True, help_text="A compact JWS while the status is `approved`, else null."
    )

    class Meta(ApprovalSerializer.Meta):
        fields = [*ApprovalSerializer.Meta.fields, "receipt"]


def shown_approval(approval: Approval, now: datetime) -> dict[str, Any]:
    """Show an approval as `ApprovalSerializer` describes it."""
    own = set(ApprovalSerializer.Meta.fields) - {"action"}
    shown = {name: getattr(approval, name) for name in own}
    return {**shown, "action": approval.action_name, "status": approval.status_at(now)}


def shown_detail(approval: Approval, now: datetime) -> dict[str, Any]:
    """Show an approval as `ApprovalDetailSerializer` describes it."""
    is_good = approval.status_at(now) is ApprovalStatus.APPROVED
    return {**shown_approval(approval, now), "receipt": approval.receipt if is_good else None}
