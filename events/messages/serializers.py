"""Messages as the API reads and shows them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from certificates.models import CertificateStatus
from certificates.public.messages import REASONS
from compliance.api.rest.fields import StrictCharField
from compliance.core.identifiers import parse_id

JWS = "jws"
MAX_AUDIENCE_LENGTH = 255
MAX_SIGNATURE_LENGTH = 4_096
MAX_SERIAL_LENGTH = 200

_RAW = ["signature", "certificate_serial"]

VERIFY_MESSAGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A payload with a signature and the serial of its certificate, or with a detached JWS.",
    "properties": {
        "payload": {},
        "signature": {"type": "string", "minLength": 1, "maxLength": MAX_SIGNATURE_LENGTH},
        "certificate_serial": {"type": "string", "minLength": 1, "maxLength": MAX_SERIAL_LENGTH},
        "jws": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_SIGNATURE_LENGTH,
            "description": "Detached, the payload unencoded (RFC 7797).",
        },
        "audience": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_AUDIENCE_LENGTH,
            "description": "What the verifier is called; a message for others is not valid.",
        },
        "verifier_agent_id": {
            "type": "string",
            "format": "uuid",
            "description": "The caller's agent that received the message; needs an API key (events:write).",
        },
    },
    "required": ["payload"],
    # With `not`, which generators of clients pass over: of a `oneOf` they make a body without fields.
    "allOf": [
        {
            "not": {
                "anyOf": [
                    *({"required": ["jws", name]} for name in _RAW),
                    {"not": {"anyOf": [{"required": ["jws"]}, {"required": _RAW}]}},
                ]
            }
        }
    ],
}


@extend_schema_field({})
class PayloadField(serializers.JSONField):
    """Any JSON value but null."""


class SignSerializer(serializers.Serializer[Any]):
    """`POST /v1/agents/{id}/sign`: any JSON value but null."""

    payload = PayloadField()
    format = serializers.ChoiceField(
        choices=[JWS], required=False, help_text="Also answer a detached JWS; costs a second signature."
    )
    audience = StrictCharField(
        max_length=MAX_AUDIENCE_LENGTH,
        required=False,
        help_text="For whom the message is; bound into the JWS, which it asks for as well.",
    )


class SignatureSerializer(serializers.Serializer[Any]):
    """A signature over the payload's canonical JSON (RFC 8785)."""

    agent_id = serializers.UUIDField()
    signature = serializers.CharField(help_text="base64")
    algorithm = serializers.CharField()
    certificate_serial = serializers.CharField()
    payload_hash = serializers.CharField(help_text="`sha256:` and the hex digest of the canonical JSON")
    signed_at = serializers.DateTimeField()
    event_id = serializers.UUIDField(source="event.id", help_text="The message_signed event")
    jws = serializers.CharField(required=False, help_text="Detached (RFC 7797); only where asked for")

    def to_representation(self, instance: Any) -> dict[str, Any]:
        return {
            name: value for name, value in super().to_representation(instance).items() if value is not None
        }


class VerifyMessageInputSerializer(serializers.Serializer[Any]):
    """A message and its proof, as `POST /v1/agents/{id}/sign` returned it."""

    payload = serializers.JSONField(allow_null=True)
    signature = StrictCharField(max_length=MAX_SIGNATURE_LENGTH, required=False)
    certificate_serial = StrictCharField(max_length=MAX_SERIAL_LENGTH, required=False)
    jws = StrictCharField(max_length=MAX_SIGNATURE_LENGTH, required=False)
    audience = StrictCharField(max_length=MAX_AUDIENCE_LENGTH, required=False)
    verifier_agent_id = StrictCharField(required=False)

    def validate_verifier_agent_id(self, value: str) -> str:
        if parse_id(value) is None:
            raise serializers.ValidationError("Must be a valid UUID.")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        has_raw = [name for name in _RAW if name in attrs]
        if (not has_raw) if "jws" in attrs else has_raw == _RAW:
            return attrs
        raise serializers.ValidationError("Send either signature and certificate_serial, or jws")


class MessageVerificationSerializer(serializers.Serializer[Any]):
    """A `MessageVerification`; branch on `valid`."""

    valid = serializers.BooleanField()
    valid_when_signed = serializers.BooleanField(
        allow_null=True,
        help_text="Whether the certificate was valid when, by the audit log, it was signed; null: not known",
    )
    reason = serializers.ChoiceField(choices=REASONS, required=False)
    agent_id = serializers.UUIDField(source="certificate.agent_id")
    certificate_serial = serializers.CharField(source="certificate.serial_number")
    certificate_status = serializers.ChoiceField(choices=CertificateStatus.choices, source="status")
    payload_hash = serializers.CharField(help_text="`sha256:` and the digest of the RFC 8785 form")
    algorithm = serializers.CharField()
    event_id = serializers.UUIDField(
        required=False, help_text="The message_verification_failed event of `verifier_agent_id`"
    )

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown = super().to_representation(instance).items()
        return {name: one for name, one in shown if one is not None or name == "valid_when_signed"}
