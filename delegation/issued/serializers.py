"""The JSON of issued tokens and of introspection."""

from typing import Any
from uuid import UUID

from rest_framework import serializers

from agents.risk import BANDS
from compliance.api.rest.fields import StrictCharField
from delegation.issued.listing import ListedToken, TokenState
from delegation.jose import tokens
from delegation.serializers import BOUND_TO, ChainActorSerializer, RootSerializer
from delegation.standing import Introspection
from delegation.standing_rule import NotStanding

TOLD_CLAIMS = (
    *("scope", "exp", "iat", "nbf", "sub", "sub_type", "aud", "iss", "jti", "act", "cnf", "sub_id"),
    *("agent_id", "cert_serial", "env"),
)
INACTIVE = {"active": False}


class RevokeDelegationSerializer(serializers.Serializer[Any]):
    reason = StrictCharField(max_length=500)


class IssuedTokenSerializer(serializers.Serializer[ListedToken]):
    """An issued token without its text, and how it stands now."""

    token_id = serializers.UUIDField(source="row.id", help_text="The claim `jti`.")
    agent_id = serializers.UUIDField(source="row.agent_id")
    certificate_serial = serializers.CharField(source="row.certificate_serial", allow_null=True)
    parent_token_id = serializers.UUIDField(
        source="row.parent_token_id", allow_null=True, help_text="The token it was handed on from."
    )
    principal = serializers.CharField(source="row.principal")
    chain = ChainActorSerializer(many=True, source="row.chain")
    scope = serializers.CharField(source="row.scope", allow_blank=True)
    audience = serializers.CharField(source="row.audience", allow_null=True)
    root = RootSerializer(source="delegation")
    bound_to = serializers.CharField(source="row.bound_to", allow_null=True, help_text=BOUND_TO)
    state = serializers.ChoiceField(
        choices=[one.value for one in TokenState],
        help_text="`stopped`: an agent no longer stands behind it, or a token it came of is revoked.",
    )
    reason = serializers.ChoiceField(
        choices=[one.value for one in NotStanding], allow_null=True, help_text="Why it does not stand."
    )
    issued_at = serializers.DateTimeField(source="row.issued_at")
    expires_at = serializers.DateTimeField(source="row.expires_at")
    revoked_at = serializers.DateTimeField(source="row.revoked_at", allow_null=True)
    revocation_reason = serializers.CharField(source="row.revocation_reason", allow_null=True)


class ActClaimSerializer(serializers.Serializer[Any]):
    """The current actor; earlier ones are nested in its own `act`."""

    sub = serializers.CharField()
    sub_type = serializers.CharField()
    act = serializers.DictField(required=False)


class ConfirmationSerializer(serializers.Serializer[Any]):
    jkt = serializers.CharField()


class SubjectIdentifierSerializer(serializers.Serializer[Any]):
    format = serializers.ChoiceField(choices=["iss_sub"])
    iss = serializers.CharField()
    sub = serializers.CharField()


class IntrospectionSerializer(serializers.Serializer[Any]):
    """RFC 7662 §2.2; of a token that does not stand only `active`, false."""

    active = serializers.BooleanField()
    scope = serializers.CharField(required=False, allow_blank=True)
    token_type = serializers.ChoiceField(choices=["Bearer", "DPoP"], required=False)
    exp = serializers.IntegerField(required=False)
    iat = serializers.IntegerField(required=False)
    nbf = serializers.IntegerField(required=False)
    sub = serializers.CharField(required=False, help_text="The root of the chain.")
    sub_type = serializers.CharField(required=False)
    aud = serializers.CharField(required=False)
    iss = serializers.CharField(required=False)
    jti = serializers.CharField(required=False)
    act = ActClaimSerializer(required=False)
    cnf = ConfirmationSerializer(required=False)
    sub_id = SubjectIdentifierSerializer(required=False)
    agent_id = serializers.UUIDField(required=False)
    cert_serial = serializers.CharField(required=False)
    env = serializers.CharField(required=False)
    risk_band = serializers.ChoiceField(choices=BANDS, required=False)
    vouching_tenant = serializers.UUIDField(
        required=False,
        help_text="The caller's tenant, if its trusted issuer verified the root. Absent for a "
        "root that another tenant verified, or that is asserted.",
    )


def shown_introspection(found: Introspection | None, *, tenant_id: UUID) -> dict[str, Any]:
    """The answer of introspection to a tenant: what the token says, that it stands, and its agent's risk.

    Only the tenant that vouches for a verified root sees that it does.
    """
    if found is None:
        return INACTIVE
    claims = tokens.to_claims(found.delegation)
    vouching = found.vouching_tenant_id
    return {
        "active": True,
        "token_type": "DPoP" if found.delegation.bound_to else "Bearer",
        **{name: claims[name] for name in TOLD_CLAIMS if name in claims},
        "risk_band": found.standing.risk_band,
        **({"vouching_tenant": str(vouching)} if vouching == tenant_id else {}),
    }
