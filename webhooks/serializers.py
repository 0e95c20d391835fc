"""Webhooks and their deliveries in and out of the API."""

from typing import Any

from rest_framework import serializers

from compliance.api.fields import (
    StrictBooleanField,
    StrictCharField,
    StrictDateTimeField,
    StrictIntegerField,
)
from compliance.api.serializers import ChangesSerializer
from webhooks.addresses import MAX_URL_LENGTH
from webhooks.models import Attempt, Delivery, Webhook
from webhooks.services import RECOVERY_LIMIT
from webhooks.vocabulary import DELIVERABLE_EVENTS, EventName

MAX_NAMED_EVENTS = 100
LONGEST_OVERLAP_SECONDS = 7 * 86_400
UNKNOWN_EVENT = f"Not an event name; choose among {', '.join(EventName.values)}"


def _url_field(**kwargs: Any) -> StrictCharField:
    return StrictCharField(
        max_length=MAX_URL_LENGTH,
        help_text="An absolute https URL to a public host, without user name, password or fragment.",
        **kwargs,
    )


def _events_field(**kwargs: Any) -> serializers.ListField:
    child = serializers.ChoiceField(EventName.choices, error_messages={"invalid_choice": UNKNOWN_EVENT})
    return serializers.ListField(
        child=child,
        allow_empty=False,
        min_length=1,
        max_length=MAX_NAMED_EVENTS,
        help_text="Repeated names count once.",
        **kwargs,
    )


class WebhookInputSerializer(serializers.Serializer[Any]):
    """What a tenant says of a webhook."""

    description = StrictCharField(max_length=500, required=False, allow_null=True, allow_blank=True)

    def validate_events(self, events: list[str]) -> list[str]:
        return list(dict.fromkeys(events))

    def validate_description(self, description: str | None) -> str:
        return description or ""


class CreateWebhookSerializer(WebhookInputSerializer):
    """`POST /v1/webhooks`."""

    url = _url_field()
    events = _events_field()


class UpdateWebhookSerializer(WebhookInputSerializer, ChangesSerializer):
    """`PATCH /v1/webhooks/{id}`: the fields to change."""

    url = _url_field(required=False)
    events = _events_field(required=False)
    active = StrictBooleanField(required=False)


class RotateSecretSerializer(serializers.Serializer[Any]):
    """`POST /v1/webhooks/{id}/rotate-secret`."""

    overlap_seconds = StrictIntegerField(
        required=False,
        min_value=0,
        max_value=LONGEST_OVERLAP_SECONDS,
        help_text="How long the old secret signs beside the new one; a day unless given, 0 if it has leaked.",
    )


class RecoverSerializer(serializers.Serializer[Any]):
    """`POST /v1/webhooks/{id}/recover`."""

    since = StrictDateTimeField(help_text="Deliveries made from then on count.")


class RecoveredSerializer(serializers.Serializer[Any]):
    """What a recovery has queued."""

    webhook_id = serializers.UUIDField()
    since = serializers.DateTimeField()
    redelivered = serializers.IntegerField(
        help_text=f"Events on their way again, at most {RECOVERY_LIMIT:,}; ask again while it is that many."
    )


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """A Webhook of the interface specification; its secret is not part of it."""

    events = serializers.ListField(child=serializers.ChoiceField(EventName.choices))
    secret_hint = serializers.CharField(help_text="The secret's last characters.")
    disabled_at = serializers.DateTimeField(
        allow_null=True, help_text="When the service switched it off, after too many failed deliveries."
    )
    previous_secret_until = serializers.DateTimeField(
        allow_null=True, help_text="Until when a rotated secret signs beside the new one."
    )

    class Meta:
        model = Webhook
        fields = [
            "id",
            "url",
            "events",
            "active",
            "description",
            "secret_hint",
            "previous_secret_until",
            "disabled_at",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields


class WebhookWithSecretSerializer(WebhookSerializer):
    """A Webhook with its fresh secret, which is not shown again."""

    secret = serializers.SerializerMethodField(help_text="`whsec_…`; keep it, it is not shown again.")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = fields

    def get_secret(self, webhook: Webhook) -> str:
        return str(self.context["secret"])


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """One try of a delivery; without `duration_ms` while it lasts, or when its sender died."""

    class Meta:
        model = Attempt
        fields = [
            "number",
            "url",
            "started_at",
            "duration_ms",
            "response_status",
            "response_body",
            "error",
        ]
        read_only_fields = fields
        extra_kwargs = {"response_body": {"help_text": "The first 4 KB of the answer's body."}}


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """An event on its way to a webhook, with its attempts."""

    webhook_id = serializers.UUIDField()
    event_id = serializers.UUIDField(source="message_id", help_text="`id` of the envelope.")
    event = serializers.ChoiceField([(name, name) for name in DELIVERABLE_EVENTS], source="message.event")
    attempts = AttemptSerializer(many=True)

    class Meta:
        model = Delivery
        fields = [
            "id",
            "webhook_id",
            "event_id",
            "event",
            "status",
            "trigger",
            "attempt_count",
            "max_attempts",
            "next_attempt_at",
            "created_at",
            "completed_at",
            "attempts",
        ]
        read_only_fields = fields
