"""Read and show agents' keys in the API."""

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers

from compliance.api.rest.fields import ClosedSerializer, RowSerializer, StrictCharField
from delegation.agent_keys.models import AgentKey


class AgentJwkSerializer(ClosedSerializer):
    """A public Ed25519 key (RFC 8037) and no more: a private half is refused."""

    kty = serializers.ChoiceField(choices=["OKP"])
    crv = serializers.ChoiceField(choices=["Ed25519"])
    x = StrictCharField(max_length=43, validators=[RegexValidator(r"^[A-Za-z0-9_-]{43}\Z")])


class RegisterAgentKeySerializer(serializers.Serializer[Any]):
    """`POST /v1/agents/{id}/keys`."""

    jwk = AgentJwkSerializer()


class AgentKeySerializer(RowSerializer[AgentKey]):
    """A key of an agent."""

    jwk = AgentJwkSerializer()

    class Meta:
        model = AgentKey
        fields = ["id", "agent_id", "thumbprint", "jwk", "created_at", "revoked_at"]
