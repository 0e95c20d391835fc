"""Read and show routes of gateways and their decisions in the API."""

import re
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.models import MAX_ACTION_NAME
from agents.risk import BANDS
from compliance.api.answers import service_header
from compliance.api.rest import fields
from compliance.api.rest.fields import ChangesSerializer, RowSerializer
from delegation.jose.tokens import RootAssurance, shown_chain
from delegation.serializers import ChainActorSerializer, NameField
from gateway.deciding.decisions import Passage
from gateway.deciding.requests import ACTION, ROUTE
from gateway.models import MAX_ROUTE_NAME, GatewayAgents, GatewayCredential, GatewayRoot, GatewayRoute
from gateway.services import FIELDS

NAME_PATTERN = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
ACTION_PATTERN = r"[\u0021\u0023-\u005B\u005D-\u007E]+"
_NAME = f"Lowercase letters, digits and hyphens; what the gateway sends in `{service_header(ROUTE)}`."
_ACTION = (
    f"What a client must be permitted to do here; null: the gateway names it in `{service_header(ACTION)}`."
)
_AUDIENCE = "The `aud` that a token must have; null: only tokens without one pass."


class _PatternField(fields.StrictCharField):
    """A JSON string that is of a pattern from its first character to its last."""

    pattern: ClassVar[str]
    longest: ClassVar[int]
    told: ClassVar[str]

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=self.longest, help_text=self.told, **options)

    def to_internal_value(self, data: Any) -> str:
        found: str = super().to_internal_value(data)
        if re.fullmatch(self.pattern, found) is None:
            raise serializers.ValidationError(f"Must be of the form {self.pattern}")
        return found


def _described(kind: type[_PatternField]) -> type[_PatternField]:
    told = {"type": "string", "minLength": 1, "maxLength": kind.longest, "pattern": f"^{kind.pattern}$"}
    return extend_schema_field(told)(kind)


@_described
class RouteNameField(_PatternField):
    pattern, longest, told = NAME_PATTERN, MAX_ROUTE_NAME, _NAME


@_described
class RouteActionField(_PatternField):
    pattern, longest, told = ACTION_PATTERN, MAX_ACTION_NAME, _ACTION


class _CredentialsField(serializers.ListField):
    """Kinds of credentials; repeated ones count once."""

    def __init__(self, **options: Any) -> None:
        options |= {"allow_empty": False, "min_length": 1, "max_length": 10}
        super().__init__(
            child=serializers.ChoiceField(GatewayCredential.choices),
            help_text="What suffices: `serial` proves nothing, `bearer` that its holder has the token, "
            "`dpop` and `httpsig` (a signed request) that it has a key.",
            **options,
        )


class RouteInputSerializer(serializers.Serializer[Any]):
    """Fields a tenant may set on a route that have a default."""

    action = RouteActionField(required=False, allow_null=True)
    audience = NameField(required=False, allow_null=True, help_text=_AUDIENCE)
    highest_band = serializers.ChoiceField(
        [(band, band) for band in BANDS],
        required=False,
        help_text="The highest risk band that passes; `high` unless given.",
    )
    root = serializers.ChoiceField(  # type: ignore[assignment]
        GatewayRoot.choices,
        required=False,
        help_text="`verified`: an issuer that this tenant trusts must have verified the chain's root.",
    )
    agents = serializers.ChoiceField(
        GatewayAgents.choices, required=False, help_text="Whose agents pass; `own` unless given."
    )
    nonce_required = fields.StrictBooleanField(
        required=False, help_text="Whether a proof must carry a nonce of this service."
    )
    uncertified_agents = fields.StrictBooleanField(
        required=False,
        help_text="Whether a token of agents without a certificate or a scope suffices.",
    )

    def validate_credentials(self, kinds: list[str]) -> list[str]:
        return list(dict.fromkeys(kinds))


class CreateRouteSerializer(RouteInputSerializer):
    """`POST /v1/gateway/routes`."""

    name = RouteNameField()
    credentials = _CredentialsField()


class UpdateRouteSerializer(RouteInputSerializer, ChangesSerializer):
    """`PATCH /v1/gateway/routes/{id}`: the fields to change."""

    name = RouteNameField(required=False)
    credentials = _CredentialsField(required=False)


class GatewayRouteSerializer(RowSerializer[GatewayRoute]):
    """A route of a tenant's gateways."""

    credentials = serializers.ListField(child=serializers.ChoiceField(GatewayCredential.choices))

    class Meta:
        model = GatewayRoute
        fields = ["id", *FIELDS, "created_at", "updated_at"]


class PassageSerializer(serializers.Serializer[Any]):
    """The identity that may pass, with its assurance."""

    route = serializers.CharField(help_text="Empty where the gateway named none.")
    action = serializers.CharField()
    credential = serializers.ChoiceField(GatewayCredential.choices)
    agent_id = serializers.UUIDField()
    did = serializers.CharField()
    tenant_id = serializers.UUIDField()
    principal = serializers.CharField()
    chain = ChainActorSerializer(many=True, help_text="Root to current.")
    scope = serializers.ListField(child=serializers.CharField())
    risk_band = serializers.ChoiceField([(band, band) for band in BANDS])
    certificate_serial = serializers.CharField(source="serial", allow_null=True)
    environment = serializers.ChoiceField(["live", "test"])
    assurance = serializers.ChoiceField(
        [(one.value, one.value) for one in RootAssurance], help_text="Of the chain's root."
    )


def shown_passage(passage: Passage) -> dict[str, Any]:
    """The JSON of `PassageSerializer`, made without its fields: gateways wait for it."""
    return {
        "route": passage.route,
        "action": passage.action,
        "credential": passage.credential.value,
        "agent_id": str(passage.agent_id),
        "did": passage.did,
        "tenant_id": str(passage.tenant_id),
        "principal": passage.principal,
        "chain": shown_chain(passage.chain),
        "scope": list(passage.scope),
        "risk_band": passage.risk_band,
        "certificate_serial": passage.serial,
        "environment": passage.environment,
        "assurance": passage.assurance.value,
    }
