"""Read and show streams in the API, in the JSON of OpenID SSF 1.0 §8.1 and RFC 8936."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from compliance.api.rest.fields import StrictBooleanField, StrictCharField, StrictIntegerField
from compliance.core.identifiers import parse_id
from compliance.outbound.addresses import MAX_URL_LENGTH
from signals.models import MAX_DESCRIPTION, MAX_EVENT, MAX_REASON, Stream
from signals.polling import MOST_AT_ONCE
from signals.streams import VERIFICATION_INTERVAL, StreamDelivery, own_url
from signals.vocabulary import SUPPORTED_EVENTS, DeliveryMethod, StreamStatus

MAX_EVENTS: Final = 50
MAX_HEADER: Final = 2048
MAX_STATE: Final = 1024
MAX_ACKNOWLEDGED: Final = 1000
_HEADER: Final = r"^[!-~]([ -~]*[!-~])?$"
_MAX_COUNT: Final = 2**53 - 1
_TEXT: Final = {"type": "string"}
_CHOSEN: Final = (
    "What you name and the service does not know is not sent. Every supported event when omitted."
)


class StreamDeliveryInputSerializer(serializers.Serializer[Any]):
    """The delivery of signals that the receiver asks for (SSF §6.1)."""

    method = serializers.ChoiceField(choices=DeliveryMethod.choices)
    endpoint_url = StrictCharField(
        max_length=MAX_URL_LENGTH, required=False, help_text="For push: an https URL to a public host."
    )
    authorization_header = StrictCharField(
        max_length=MAX_HEADER,
        required=False,
        help_text="For push: sent as `Authorization` with each token; stored encrypted and never shown.",
    )

    def validate_authorization_header(self, text: str) -> str:
        if re.fullmatch(_HEADER, text) is None:
            raise serializers.ValidationError("Must be printable ASCII without blanks at its ends.")
        return text

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        is_push = attrs["method"] == DeliveryMethod.PUSH
        if is_push and "endpoint_url" not in attrs:
            raise serializers.ValidationError({"endpoint_url": "Push needs an endpoint."})
        return attrs


class StreamInputSerializer(serializers.Serializer[Any]):
    """Fields that a receiver may set on a stream."""

    delivery = StreamDeliveryInputSerializer(required=False, help_text="Poll when omitted.")
    events_requested = serializers.ListField(
        child=StrictCharField(max_length=MAX_EVENT, allow_blank=True),
        max_length=MAX_EVENTS,
        required=False,
        help_text=_CHOSEN,
    )
    description = StrictCharField(max_length=MAX_DESCRIPTION, required=False, allow_blank=True)


class CreateStreamSerializer(StreamInputSerializer):
    """`POST /v1/ssf/streams`."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "aud" in self.initial_data:
            raise serializers.ValidationError({"aud": "The service assigns the audience of a stream."})
        return attrs


class UpdateStreamSerializer(StreamInputSerializer):
    """`PATCH /v1/ssf/streams`: the fields to change beside `stream_id`; `delivery` is replaced as a whole."""

    # The generator makes every field of a PATCH optional.
    required_in_changes: ClassVar = ("stream_id",)

    stream_id = StrictCharField(max_length=64)


class StreamDeliverySerializer(serializers.Serializer[Stream]):
    """The delivery of signals to the receiver."""

    method = serializers.ChoiceField(choices=DeliveryMethod.choices)
    endpoint_url = serializers.CharField(help_text="Where they are pushed to, or where to poll.")


class StreamSerializer(serializers.Serializer[Stream]):
    """A stream's configuration (SSF §8.1.1)."""

    stream_id = serializers.UUIDField(source="id")
    iss = serializers.SerializerMethodField()
    aud = serializers.CharField(source="audience")
    events_supported = serializers.SerializerMethodField()
    events_requested = serializers.ListField(child=serializers.CharField())
    events_delivered = serializers.ListField(child=serializers.CharField())
    delivery = serializers.SerializerMethodField()
    min_verification_interval = serializers.SerializerMethodField(help_text="Seconds.")
    description = serializers.CharField()

    @extend_schema_field({"type": "string"})
    def get_iss(self, stream: Stream) -> str:
        return settings.TOKEN_ISSUER

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_events_supported(self, stream: Stream) -> list[str]:
        return list(SUPPORTED_EVENTS)

    @extend_schema_field({"type": "integer"})
    def get_min_verification_interval(self, stream: Stream) -> int:
        return int(VERIFICATION_INTERVAL.total_seconds())

    @extend_schema_field(StreamDeliverySerializer)
    def get_delivery(self, stream: Stream) -> Mapping[str, str]:
        url = stream.endpoint_url if stream.is_push else f"{own_url(stream.id)}/poll"
        return {"method": stream.method, "endpoint_url": url}


class StatusInputSerializer(serializers.Serializer[Any]):
    """`POST /v1/ssf/status`."""

    stream_id = StrictCharField(max_length=64)
    status = serializers.ChoiceField(choices=StreamStatus.choices)
    reason = StrictCharField(max_length=MAX_REASON, required=False, allow_blank=True)


class StreamStatusSerializer(serializers.Serializer[Stream]):
    """A stream's status (SSF §8.1.2)."""

    stream_id = serializers.UUIDField(source="id")
    status = serializers.ChoiceField(choices=StreamStatus.choices)
    reason = serializers.CharField(source="status_reason", help_text="Empty if nobody gave one.")


class StreamVerificationSerializer(serializers.Serializer[Any]):
    """`POST /v1/ssf/verify`."""

    stream_id = StrictCharField(max_length=64)
    state = StrictCharField(max_length=MAX_STATE, required=False, help_text="Comes back in the event.")


@extend_schema_field(
    {
        "type": "object",
        "maxProperties": MAX_ACKNOWLEDGED,
        "additionalProperties": {
            "type": "object",
            "properties": {"err": _TEXT, "description": _TEXT},
            "required": ["err"],
        },
    }
)
class TokenErrorsField(serializers.DictField):
    """A receiver's errors for tokens it does not accept (RFC 8936 §2.6), by their `jti`."""

    def to_internal_value(self, data: Any) -> dict[str, str]:
        found = super().to_internal_value(data)
        if len(found) > MAX_ACKNOWLEDGED:
            raise serializers.ValidationError(f"At most {MAX_ACKNOWLEDGED} at once.")
        for jti, said in found.items():
            texts = [said.get("err"), said.get("description", "")] if isinstance(said, dict) else [None]
            if not all(isinstance(text, str) for text in texts):
                raise serializers.ValidationError("Each needs a string `err`, and may have a `description`.")
            found[jti] = ": ".join(text for text in texts if text)
        return found


class PollSerializer(serializers.Serializer[Any]):
    """`POST /v1/ssf/streams/{id}/poll` (RFC 8936 §2.2)."""

    maxEvents = StrictIntegerField(  # noqa: N815  (the standard's name)
        min_value=0, max_value=_MAX_COUNT, required=False, help_text=f"At most {MOST_AT_ONCE} come at once."
    )
    returnImmediately = StrictBooleanField(required=False)  # noqa: N815
    ack = serializers.ListField(
        child=StrictCharField(max_length=256, allow_blank=True), max_length=MAX_ACKNOWLEDGED, required=False
    )
    setErrs = TokenErrorsField(required=False)  # noqa: N815


class PollAnswerSerializer(serializers.Serializer[Any]):
    """Tokens by their `jti` (RFC 8936 §2.3)."""

    sets = serializers.DictField(child=serializers.CharField())
    moreAvailable = serializers.BooleanField()  # noqa: N815


class TransmitterSerializer(serializers.Serializer[Any]):
    """Transmitter configuration metadata (SSF §7.1)."""

    spec_version = serializers.CharField()
    issuer = serializers.CharField()
    jwks_uri = serializers.CharField()
    delivery_methods_supported = serializers.ListField(child=serializers.CharField())
    configuration_endpoint = serializers.CharField()
    status_endpoint = serializers.CharField()
    verification_endpoint = serializers.CharField()
    authorization_schemes = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))
    default_subjects = serializers.CharField(help_text="`ALL`: a stream tells of everything of its tenant.")


def delivery_from(data: Mapping[str, Any]) -> StreamDelivery:
    """Return the delivery in a validated body; poll if it names none."""
    given = data.get("delivery") or {"method": DeliveryMethod.POLL}
    url, header = given.get("endpoint_url", ""), given.get("authorization_header")
    return StreamDelivery(DeliveryMethod(given["method"]), url, header)


def poll_from(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `polling.poll()` in a validated body; a `jti` that is none is left out."""
    return {
        "most": data.get("maxEvents", MOST_AT_ONCE),
        "returns_immediately": data.get("returnImmediately", False),
        "acknowledged": [jti for text in data.get("ack", []) if (jti := parse_id(text))],
        "refused": {jti: said for text, said in data.get("setErrs", {}).items() if (jti := parse_id(text))},
    }
