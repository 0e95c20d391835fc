"""Read and show webhooks and their deliveries in the API."""

from typing import Any

from rest_framework import serializers

from compliance.api.rest import fields
from compliance.api.rest.fields import ChangesSerializer, RowSerializer
from compliance.outbound.addresses import MAX_URL_LENGTH
from webhooks.models import Attempt, Delivery, Format, Webhook
from webhooks.services import RECOVERY_LIMIT
from webhooks.vocabulary import DELIVERABLE_EVENTS, EventName

MAX_NAMED_EVENTS = 100
LONGEST_OVERLAP_SECONDS = 7 * 86_400
UNKNOWN_EVENT = f"Not an event name; choose among {', '.join(EventName.values)}"


_URL: dict[str, Any] = {
    "max_length": MAX_URL_LENGTH,
    "help_text": "An absolute https URL to a public host, without user name, password or fragment.",
}


def _events_field(**options: Any) -> serializers.ListField:
    child = serializers.ChoiceField(EventName.choices, error_messages={"invalid_choice": UNKNOWN_EVENT})
    options |= {"allow_empty": False, "min_length": 1, "max_length": MAX_NAMED_EVENTS}
    return serializers.ListField(child=child, help_text="Repeated names count once.", **options)


class WebhookInputSerializer(serializers.Serializer[Any]):
    """Fields a tenant may set on a webhook."""

    description = fields.StrictCharField(max_length=500, required=False, allow_null=True, allow_blank=True)
    format = serializers.ChoiceField(
        Format.choices,
        required=False,
        help_text="The body: the envelope, a CloudEvents 1.0 event, or a message for Slack.",
    )

    def validate_events(self, events: list[str]) -> list[str]:
        return list(dict.fromkeys(events))

    def validate_description(self, description: str | None) -> str:
        return description or ""


class CreateWebhookSerializer(WebhookInputSerializer):
    """`POST /v1/webhooks`."""

    url = fields.StrictCharField(**_URL)
    events = _events_field()


class UpdateWebhookSerializer(WebhookInputSerializer, ChangesSerializer):
    """`PATCH /v1/webhooks/{id}`: the fields to change."""

    url = fields.StrictCharField(**_URL, required=False)
    events = _events_field(required=False)
    active = fields.StrictBooleanField(required=False)


class RotateSecretSerializer(serializers.Serializer[Any]):
    """`POST /v1/webhooks/{id}/rotate-secret`."""

    overlap_seconds = fields.StrictIntegerField(
        required=False,
        min_value=0,
        max_value=LONGEST_OVERLAP_SECONDS,
        help_text="How long the old secret signs beside the new one; a day unless given, 0 if it has leaked.",
    )


class RecoverSerializer(serializers.Serializer[Any]):
    """`POST /v1/webhooks/{id}/recover`."""

    since = fields.StrictDateTimeField(help_text="Deliveries made from then on count.")


class RecoveredSerializer(serializers.Serializer[Any]):
    """The result of a recovery."""

    webhook_id = serializers.UUIDField()
    since = serializers.DateTimeField()
    redelivered = serializers.IntegerField(
        help_text=f"Events on their way again, at most {RECOVERY_LIMIT:,}; ask again while it is that many."
    )


class WebhookSerializer(RowSerializer[Webhook]):
    """A Webhook of the interface specification, without its secret."""

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
            *("id", "url", "events", "active", "description", "format", "secret_hint"),
            *("previous_secret_until", "disabled_at", "created_at", "updated_at"),
        ]


class WebhookWithSecretSerializer(WebhookSerializer):
    """A Webhook with its new secret."""

    secret = serializers.CharField(read_only=True, help_text="`whsec_…`; keep it, it is not shown again.")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]


class AttemptSerializer(RowSerializer[Attempt]):
    """One attempt of a delivery; `duration_ms` is null while it lasts, or if its sender died."""

    class Meta:
        model = Attempt
        fields = ["number", "url", "started_at", "duration_ms", "response_status", "response_body", "error"]
        extra_kwargs = {"response_body": {"help_text": "The first 4 KB of the answer's body."}}


class DeliverySerializer(RowSerializer[Delivery]):
    """The delivery of an event to a webhook, with its attempts."""

    webhook_id = serializers.UUIDField()
    event_id = serializers.UUIDField(source="message_id", help_text="`id` of the envelope.")
    event = serializers.ChoiceField([(name, name) for name in DELIVERABLE_EVENTS], source="message.event")
    attempts = AttemptSerializer(many=True)

    class Meta:
        model = Delivery
        fields = [
            *("id", "webhook_id", "event_id", "event", "status", "trigger", "attempt_count"),
            *("max_attempts", "next_attempt_at", "created_at", "completed_at", "attempts"),
        ]
