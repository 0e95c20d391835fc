"""The JSON of delegations, of issued tokens, of introspection and of JWKs."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.risk import BANDS
from compliance.api.rest.fields import StrictCharField, StrictIntegerField
from compliance.core.plain_text import PLAIN_TEXT_PATTERN, is_plain_text
from delegation.issued.credentials import AgentCredential
from delegation.issued.listing import ListedToken, TokenState
from delegation.issuing.applications import DEFAULT_TTL, Grant
from delegation.issuing.issuance import IssuedDelegation
from delegation.jose import jws, tokens
from delegation.jose.tokens import ChainActor, ChainActorType, Delegation, RootAssurance
from delegation.lifecycle import MAX_TTL
from delegation.services import TokenVerification
from delegation.standing import NotStanding, Standing

MIN_TTL = timedelta(minutes=1)
BOUND_TO = "RFC 7638 thumbprint of the key that a holder must prove to possess; null for a bearer token."
ACTOR_TYPES = [kind.value for kind in ChainActorType]
TOLD_CLAIMS = (
    *("scope", "exp", "iat", "nbf", "sub", "sub_type", "aud", "iss", "jti", "act", "cnf", "sub_id"),
    *("agent_id", "cert_serial", "env"),
)
INACTIVE = {"active": False}


def is_plain(text: str) -> None:
    if not is_plain_text(text):
        raise serializers.ValidationError(
            "Characters that don't show (control, format, zero-width or direction ones) are not allowed."
        )


def is_scope(text: str) -> None:
    if not tokens.is_scope(text):
        raise serializers.ValidationError(
            "Must be space-delimited tokens of printable ASCII without quotes and backslashes."
        )


def is_thumbprint(text: str) -> None:
    if not tokens.is_thumbprint(text):
        raise serializers.ValidationError("Must be an RFC 7638 thumbprint by SHA-256.")


@extend_schema_field(
    {"type": "string", "minLength": 1, "maxLength": tokens.MAX_NAME_LENGTH, "pattern": PLAIN_TEXT_PATTERN}
)
class NameField(StrictCharField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=tokens.MAX_NAME_LENGTH, validators=[is_plain], **kwargs)


@extend_schema_field(
    # An empty one is described beside it, by `allow_blank`.
    {"type": "string", "minLength": 1, "maxLength": tokens.MAX_SCOPE_LENGTH, "pattern": tokens.SCOPE_PATTERN}
)
class ScopeField(StrictCharField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=tokens.MAX_SCOPE_LENGTH, validators=[is_scope], **kwargs)


@extend_schema_field({"type": "string", "pattern": tokens.THUMBPRINT_PATTERN})
class ThumbprintField(StrictCharField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=tokens.THUMBPRINT_LENGTH, validators=[is_thumbprint], **kwargs)


class ChainActorInputSerializer(serializers.Serializer[Any]):
    sub = NameField()
    type = serializers.ChoiceField(choices=ACTOR_TYPES)


class IssueDelegationSerializer(serializers.Serializer[Any]):
    chain = serializers.ListField(
        child=ChainActorInputSerializer(),
        min_length=1,
        max_length=tokens.MAX_CHAIN,
        help_text="Ordered from root to current.",
    )
    scope = ScopeField(
        required=False,
        allow_null=True,
        allow_blank=True,
        help_text=(
            "Space-delimited; each token one of the `permitted_actions` in the agent's certificate, before "
            "the first in its profile. Omitted: no action."
        ),
    )
    audience = NameField(required=False, allow_null=True)
    ttl_seconds = StrictIntegerField(
        min_value=int(MIN_TTL.total_seconds()),
        max_value=int(MAX_TTL.total_seconds()),
        required=False,
        allow_null=True,
        help_text="3600 when omitted; the token never outlives the agent's certificate.",
    )
    parent_token = StrictCharField(
        max_length=jws.MAX_LENGTH,
        required=False,
        allow_null=True,
        help_text="Re-delegate: the chain must extend this token's, within its scope, audience and time.",
    )
    dpop_jkt = ThumbprintField(
        required=False,
        allow_null=True,
        help_text="RFC 7638 thumbprint of the key the token is bound to; omitted: the key of the DPoP proof.",
    )


class VerifyDelegationSerializer(serializers.Serializer[Any]):
    token = StrictCharField(allow_blank=True)
    audience = StrictCharField(
        required=False,
        allow_null=True,
        max_length=tokens.MAX_NAME_LENGTH,
        help_text="Your own name: a token for another audience, or for none, is `invalid_audience`.",
    )


class ChainActorSerializer(serializers.Serializer[Any]):
    sub = serializers.CharField()
    type = serializers.ChoiceField(choices=ACTOR_TYPES)


class RootSerializer(serializers.Serializer[Delegation]):
    """The root of a chain and its assurance."""

    assurance = serializers.ChoiceField(
        choices=[one.value for one in RootAssurance],
        source="root_assurance",
        help_text="`verified` by a trusted issuer, or `asserted` by the caller that had the token issued.",
    )
    issuer = serializers.CharField(
        source="subject_identifier.issuer", default=None, allow_null=True, help_text="Null unless verified."
    )
    subject = serializers.CharField(
        source="subject_identifier.subject",
        default=None,
        allow_null=True,
        help_text="The root's name at the issuer.",
    )
    vouched_by = serializers.UUIDField(
        source="vouching_agent_id",
        allow_null=True,
        help_text="The agent whose tenant trusts the issuer, and chose its keys. Null unless verified.",
    )


class DelegationSerializer(serializers.Serializer[IssuedDelegation]):
    token = serializers.CharField(help_text="Compact JWS; shown once and kept nowhere.")
    chain = ChainActorSerializer(many=True, source="delegation.chain")
    principal = serializers.CharField(source="delegation.principal")
    scope = serializers.CharField(source="delegation.scope", allow_blank=True)
    issued_at = serializers.DateTimeField(source="delegation.issued")
    expires_at = serializers.DateTimeField(source="delegation.expires")
    token_id = serializers.UUIDField(source="delegation.token_id")
    root = RootSerializer(source="delegation")
    bound_to = serializers.CharField(source="delegation.bound_to", allow_null=True, help_text=BOUND_TO)


class ValidDelegationSerializer(serializers.Serializer[TokenVerification]):
    valid = serializers.BooleanField()
    principal = serializers.CharField(source="delegation.principal")
    chain = ChainActorSerializer(many=True, source="delegation.chain")
    chain_display = serializers.CharField(source="delegation.chain_display")
    scope = serializers.CharField(source="delegation.scope", allow_blank=True)
    agent_id = serializers.UUIDField(source="delegation.agent_id")
    expires_at = serializers.DateTimeField(source="delegation.expires")
    audience = serializers.CharField(source="delegation.audience", allow_null=True)
    certificate_serial = serializers.CharField(source="delegation.certificate_serial", allow_null=True)
    environment = serializers.CharField(source="delegation.environment")
    token_id = serializers.UUIDField(source="delegation.token_id")
    root = RootSerializer(source="delegation")
    bound_to = serializers.CharField(source="delegation.bound_to", allow_null=True, help_text=BOUND_TO)


class InvalidDelegationSerializer(serializers.Serializer[TokenVerification]):
    valid = serializers.BooleanField()
    reason = serializers.CharField()


class JwkSerializer(serializers.Serializer[Any]):
    """A public token key (RFC 7517)."""

    kty = serializers.CharField()
    crv = serializers.CharField()
    x = serializers.CharField()
    y = serializers.CharField()
    kid = serializers.CharField(help_text="RFC 7638 thumbprint.")
    alg = serializers.CharField()
    use = serializers.CharField()


class JwksSerializer(serializers.Serializer[Any]):
    keys = JwkSerializer(many=True)


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
    root = RootSerializer(source="row")
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


class AgentCredentialSerializer(serializers.Serializer[AgentCredential]):
    """A credential of an agent."""

    credential = serializers.CharField(help_text="A compact JWS of the type `vc+jwt`.")
    valid_until = serializers.DateTimeField(help_text="Fetch another one by then.")


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


def grant_from(data: dict[str, Any], *, proven_key: str | None) -> Grant:
    """The grant in the validated body of `IssueDelegationSerializer`; `proven_key` as in a grant."""
    ttl = data.get("ttl_seconds")
    return Grant(
        chain=tuple(ChainActor(actor["sub"], ChainActorType(actor["type"])) for actor in data["chain"]),
        scope=tokens.normalised_scope(data.get("scope") or ""),
        audience=data.get("audience"),
        ttl=DEFAULT_TTL if ttl is None else timedelta(seconds=ttl),
        bound_to=data.get("dpop_jkt"),
        proven_key=proven_key,
    )


def shown_verification(outcome: TokenVerification) -> Any:
    """The JSON of a verdict."""
    kind = ValidDelegationSerializer if outcome.valid else InvalidDelegationSerializer
    return kind(outcome).data


def shown_introspection(found: tuple[Delegation, Standing] | None, *, tenant_id: UUID) -> dict[str, Any]:
    """The answer of introspection to a tenant: what the token says, that it stands, and its agent's risk.

    Only the tenant whose trusted issuer verified the root sees that it vouches for it.
    """
    if found is None:
        return INACTIVE
    delegation, standing = found
    claims = tokens.to_claims(delegation)
    is_vouching = delegation.subject_identifier is not None and standing.root_tenant_id == tenant_id
    return {
        "active": True,
        "token_type": "DPoP" if delegation.bound_to else "Bearer",
        **{name: claims[name] for name in TOLD_CLAIMS if name in claims},
        "risk_band": standing.risk_band,
        **({"vouching_tenant": str(tenant_id)} if is_vouching else {}),
    }
