"""The JSON of trusted issuers."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from compliance.api.rest import fields
from compliance.api.rest.fields import ChangesSerializer, RowSerializer
from delegation.issuers import key_sets
from delegation.issuers.models import (
    DEFAULT_AGE,
    LONGEST_AGE,
    MAX_NAME_LENGTH,
    MAX_URL_LENGTH,
    SHORTEST_AGE,
    TrustedIssuer,
)
from delegation.jose.tokens import MAX_SUBJECT_LENGTH

MOST_AUDIENCES = 20
MOST_CLAIMS = 10
MOST_VALUES = 50
DEFAULTS = {
    "algorithms": ["RS256", "ES256"],
    "subject_claim": "sub",
    "max_age_seconds": int(DEFAULT_AGE.total_seconds()),
}
ASCII = r"^[\u0021-\u007E]+$"
_KEYS: dict[str, Any] = {"type": "array", "minItems": 1, "maxItems": key_sets.MOST_KEYS}
_SET: dict[str, Any] = {
    "type": "object",
    "properties": {"keys": {**_KEYS, "items": {"type": "object", "additionalProperties": {}}}},
    "required": ["keys"],
}
_CLAIMS: dict[str, Any] = {
    "type": "object",
    "maxProperties": MOST_CLAIMS,
    "additionalProperties": {
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_VALUES,
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH},
    },
}


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": MAX_SUBJECT_LENGTH, "pattern": ASCII})
class IssuerField(fields.StrictCharField):
    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise serializers.ValidationError("Must be printable ASCII without spaces.")
        return text


@extend_schema_field(_SET)
class KeySetField(serializers.Field[Any, Any, Any, Any]):
    """A JWK Set; the service judges its keys."""

    def to_internal_value(self, data: Any) -> Any:
        keys = data.get("keys") if isinstance(data, dict) else None
        if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys) or not keys:
            raise serializers.ValidationError('Must be an object with "keys", a list of JWKs.')
        if len(keys) > key_sets.MOST_KEYS:
            raise serializers.ValidationError(f"Must hold at most {key_sets.MOST_KEYS} keys.")
        return {"keys": keys}

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(_CLAIMS)
class RequiredClaimsField(serializers.DictField):
    """Names of claims, each with its permitted values."""

    child = serializers.ListField(
        child=fields.StrictCharField(max_length=MAX_NAME_LENGTH), min_length=1, max_length=MOST_VALUES
    )

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict) or len(data) > MOST_CLAIMS:
            raise serializers.ValidationError(f"Must be an object with at most {MOST_CLAIMS} claims.")
        if any(len(name) > MAX_NAME_LENGTH for name in data):
            raise serializers.ValidationError(f"Names of claims have at most {MAX_NAME_LENGTH} characters.")
        return super().to_internal_value(data)


def _names(**options: Any) -> serializers.ListField:
    child = fields.StrictCharField(max_length=MAX_NAME_LENGTH)
    return serializers.ListField(child=child, min_length=1, max_length=MOST_AUDIENCES, **options)


def _algorithms(**options: Any) -> serializers.ListField:
    child = serializers.ChoiceField([(name, name) for name in key_sets.ALGORITHMS])
    most = len(key_sets.ALGORITHMS)
    return serializers.ListField(child=child, min_length=1, max_length=most, **options)


_AUDIENCES = "The `aud` of the ID tokens: client ids of yours. A token with any other audience is refused."
_CLAIM = "The claim that names the human in the chain; `email` counts only with `email_verified`."


class TrustedIssuerInputSerializer(serializers.Serializer[Any]):
    """Fields a tenant may set on a trusted issuer."""

    jwks_uri = fields.StrictCharField(
        max_length=MAX_URL_LENGTH,
        required=False,
        allow_null=True,
        help_text="Where its keys are; without this and `jwks` its discovery document says it.",
    )
    jwks = KeySetField(required=False, allow_null=True, help_text="Its keys themselves: nothing is fetched.")
    subject_claim = fields.StrictCharField(max_length=MAX_NAME_LENGTH, required=False, help_text=_CLAIM)
    required_claims = RequiredClaimsField(
        required=False, help_text="Claims that must be, or be a list with, one of the values."
    )
    max_age_seconds = fields.StrictIntegerField(
        required=False,
        min_value=int(SHORTEST_AGE.total_seconds()),
        max_value=int(LONGEST_AGE.total_seconds()),
        help_text=f"How old an ID token may be; {int(DEFAULT_AGE.total_seconds())} when omitted.",
    )
    active = fields.StrictBooleanField(required=False)

    def validate_audiences(self, names: list[str]) -> list[str]:
        return list(dict.fromkeys(names))

    validate_algorithms = validate_audiences


class CreateTrustedIssuerSerializer(TrustedIssuerInputSerializer):
    """`POST /v1/trusted-issuers`."""

    issuer = IssuerField(max_length=MAX_SUBJECT_LENGTH, help_text="The exact `iss` of its ID tokens.")
    audiences = _names(help_text=_AUDIENCES)
    algorithms = _algorithms(required=False, help_text="RS256 and ES256 when omitted.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**DEFAULTS, **attrs}


class UpdateTrustedIssuerSerializer(TrustedIssuerInputSerializer, ChangesSerializer):
    """`PATCH /v1/trusted-issuers/{id}`: the fields to change; the issuer itself stays."""

    audiences = _names(required=False, help_text=_AUDIENCES)
    algorithms = _algorithms(required=False)


class TrustedIssuerSerializer(RowSerializer[TrustedIssuer]):
    """An issuer whose ID tokens the tenant trusts."""

    jwks = KeySetField(allow_null=True)
    required_claims = RequiredClaimsField()
    algorithms = serializers.ListField(
        child=serializers.ChoiceField([(name, name) for name in key_sets.ALGORITHMS])
    )

    class Meta:
        model = TrustedIssuer
        fields = [
            *("id", "issuer", "jwks_uri", "jwks", "audiences", "algorithms", "subject_claim"),
            *("required_claims", "max_age_seconds", "active", "created_at", "updated_at"),
        ]
