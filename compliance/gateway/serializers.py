"""Read and show routes of gateways and their decisions in the API."""

from typing import Any

from rest_framework import serializers

from agents.risk import BANDS
from compliance.api.rest import fields
from compliance.api.rest.serializers import ChangesSerializer
from compliance.core.plain_text import PLAIN_TEXT_PATTERN
from compliance.gateway.models import (
    MAX_ACTION_LENGTH,
    MAX_ROUTE_NAME,
    GatewayAgents,
    GatewayCredential,
    GatewayRoot,
    GatewayRoute,
)
from delegation.jose.tokens import MAX_NAME_LENGTH, ChainActorType, RootAssurance

NAME_PATTERN = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
ACTION_PATTERN = r"^[\u0021\u0023-\u005B\u005D-\u007E]+$"
_NAME = "Lowercase letters, digits and hyphens; what the gateway sends in `X-Service-Gateway-Route`."
_ACTION = "What a client must be permitted to do here; null: the gateway names it in `X-Service-Action`."
_AUDIENCE = "The `aud` that a token must have; null: only tokens without one pass."


def _name(**options: Any) -> serializers.RegexField:
    return _PatternField(NAME_PATTERN, max_length=MAX_ROUTE_NAME, help_text=_NAME, **options)


class _PatternField(serializers.RegexField):
    """A JSON string of a pattern; white space is kept."""

    def __init__(self, regex: str, **kwargs: Any) -> None:
        super().__init__(regex, trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class _CredentialsField(serializers.ListField):
    """Kinds of credentials, each once."""

    def __init__(self, **options: Any) -> None:
        options |= {"allow_empty": False, "min_length": 1, "max_length": 10}
        super().__init__(
            child=serializers.ChoiceField(GatewayCredential.choices),
            help_text="What suffices: `serial` proves nothing, `bearer` that its holder has the token.",
            **options,
        )

    def to_internal_value(self, data: Any) -> list[str]:
        return list(dict.fromkeys(super().to_internal_value(data)))


class RouteInputSerializer(serializers.Serializer[Any]):
    """Fields a tenant may set on a route that have a default."""

    action = _PatternField(
        ACTION_PATTERN, max_length=MAX_ACTION_LENGTH, required=False, allow_null=True, help_text=_ACTION
    )
    audience = _PatternField(
        PLAIN_TEXT_PATTERN,
        max_length=MAX_NAME_LENGTH,
        required=False,
        allow_null=True,
        help_text=_AUDIENCE,
    )
    highest_band = serializers.ChoiceField(
        [(band, band) for band in BANDS],
        required=False,
        help_text="The highest risk band that passes; `high` unless given.",
    )
    root = serializers.ChoiceField(
        GatewayRoot.choices,
        required=False,
        help_text="`verified`: a trusted issuer must have verified the chain's root.",
    )
    agents = serializers.ChoiceField(
        GatewayAgents.choices, required=False, help_text="Whose agents pass; `own` unless given."
    )
    nonce_required = fields.StrictBooleanField(
        required=False, help_text="Whether a proof must carry a nonce of this service."
    )


class CreateRouteSerializer(RouteInputSerializer):
    """`POST /v1/gateway/routes`."""

    name = _name()
    credentials = _CredentialsField()


class UpdateRouteSerializer(RouteInputSerializer, ChangesSerializer):
    """`PATCH /v1/gateway/routes/{id}`: the fields to change."""

    name = _name(required=False)
    credentials = _CredentialsField(required=False)


class GatewayRouteSerializer(serializers.ModelSerializer[GatewayRoute]):
    """A route of a tenant's gateways."""

    credentials = serializers.ListField(child=serializers.ChoiceField(GatewayCredential.choices))

    class Meta:
        model = GatewayRoute
        fields = [
            *("id", "name", "credentials", "action", "audience", "highest_band", "root", "agents"),
            *("nonce_required", "created_at", "updated_at"),
        ]
        read_only_fields = fields


class PassageActorSerializer(serializers.Serializer[Any]):
    """One actor of a chain."""

    sub = serializers.CharField()
    type = serializers.ChoiceField([(kind.value, kind.value) for kind in ChainActorType])


class PassageSerializer(serializers.Serializer[Any]):
    """Who may pass, and how sure that is."""

    route = serializers.CharField(help_text="Empty where the gateway named none.")
    action = serializers.CharField()
    credential = serializers.ChoiceField(GatewayCredential.choices)
    agent_id = serializers.UUIDField()
    did = serializers.CharField()
    tenant_id = serializers.UUIDField()
    principal = serializers.CharField()
    chain = PassageActorSerializer(many=True, help_text="Root to current.")
    scope = serializers.ListField(child=serializers.CharField())
    risk_band = serializers.ChoiceField([(band, band) for band in BANDS])
    certificate_serial = serializers.CharField(source="serial", allow_null=True)
    environment = serializers.ChoiceField(["live", "test"])
    assurance = serializers.ChoiceField(
        [(one.value, one.value) for one in RootAssurance], help_text="Of the chain's root."
    )
