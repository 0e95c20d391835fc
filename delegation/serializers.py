"""The JSON of delegations and JWKs."""

from datetime import datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from compliance.api.rest.fields import StrictCharField, StrictIntegerField
from compliance.core.plain_text import PLAIN_TEXT_PATTERN, is_plain_text
from delegation.issuing.applications import DEFAULT_TTL, Grant
from delegation.issuing.groups import IssuedDelegation
from delegation.jose import jws, tokens
from delegation.jose.tokens import ChainActor, ChainActorType, Delegation, RootAssurance
from delegation.lifecycle import MAX_TTL
from delegation.services import TokenVerification

MIN_TTL = timedelta(minutes=1)
BOUND_TO = "RFC 7638 thumbprint of the key that a holder must prove to possess; null for a bearer token."
ACTOR_TYPES = [kind.value for kind in ChainActorType]


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
    """Who stands behind the root of a chain."""

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


def shown_verification(outcome: TokenVerification) -> dict[str, Any]:
    """What `ValidDelegationSerializer` or the other describes, made quicker by hand."""
    found = outcome.delegation
    if found is None:
        return {"valid": False, "reason": str(outcome.reason)}
    return {
        "valid": True,
        "principal": found.principal,
        "chain": tokens.shown_chain(found.chain),
        "chain_display": found.chain_display,
        "scope": found.scope,
        "agent_id": str(found.agent_id),
        "expires_at": _moment(found.expires),
        "audience": found.audience,
        "certificate_serial": found.certificate_serial,
        "environment": found.environment,
        **_holding(found),
    }


def shown_issued(outcome: IssuedDelegation) -> dict[str, Any]:
    """What `DelegationSerializer` describes, made quicker by hand."""
    found = outcome.delegation
    return {
        "token": outcome.token,
        "chain": tokens.shown_chain(found.chain),
        "principal": found.principal,
        "scope": found.scope,
        "issued_at": _moment(found.issued),
        "expires_at": _moment(found.expires),
        **_holding(found),
    }


def _holding(found: Delegation) -> dict[str, Any]:
    subject = found.subject_identifier
    vouching = found.vouching_agent_id
    root = {
        "assurance": found.root_assurance.value,
        "issuer": subject.issuer if subject else None,
        "subject": subject.subject if subject else None,
        "vouched_by": str(vouching) if vouching else None,
    }
    return {"token_id": str(found.token_id), "root": root, "bound_to": found.bound_to}


def _moment(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")
