"""Delegations in and out of the API."""

import re
from datetime import timedelta
from typing import Any

from rest_framework import serializers

from compliance.api.fields import StrictCharField, StrictIntegerField
from delegation import jws, tokens
from delegation.lifecycle import MAX_TTL
from delegation.services import DEFAULT_TTL, Grant, IssuedDelegation, Verdict
from delegation.tokens import ActorType, ChainActor

MIN_TTL = timedelta(minutes=1)
ACTOR_TYPES = [kind.value for kind in ActorType]


class Matches:
    """A validator by regular expression that must match the whole text, its last line break included."""

    def __init__(self, pattern: str, message: str) -> None:
        self._pattern, self._message = re.compile(pattern), message

    def __call__(self, text: str) -> None:
        if not self._pattern.fullmatch(text):
            raise serializers.ValidationError(self._message)


is_plain_text = Matches(tokens.PLAIN_TEXT_PATTERN, "Control and direction characters are not allowed.")
is_scope = Matches(
    tokens.SCOPE_PATTERN, "Must be space-delimited tokens of printable ASCII without quotes and backslashes."
)


class ChainActorInputSerializer(serializers.Serializer[Any]):
    """One actor of a chain."""

    sub = StrictCharField(max_length=tokens.MAX_SUB_LENGTH, validators=[is_plain_text])
    type = serializers.ChoiceField(choices=ACTOR_TYPES)


class IssueDelegationSerializer(serializers.Serializer[Any]):
    """`POST /v1/agents/{id}/delegation`."""

    chain = serializers.ListField(
        child=ChainActorInputSerializer(),
        min_length=1,
        max_length=tokens.MAX_CHAIN,
        help_text="Ordered from root to current.",
    )
    scope = StrictCharField(
        max_length=tokens.MAX_SCOPE_LENGTH,
        required=False,
        allow_null=True,
        allow_blank=True,
        validators=[is_scope],
        help_text="Space-delimited; each token one of the agent's `permitted_actions`. Omitted: no action.",
    )
    audience = StrictCharField(
        max_length=tokens.MAX_AUDIENCE_LENGTH, required=False, allow_null=True, validators=[is_plain_text]
    )
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


class VerifyDelegationSerializer(serializers.Serializer[Any]):
    """`POST /v1/delegation/verify`."""

    token = StrictCharField(allow_blank=True)


class ChainActorSerializer(serializers.Serializer[Any]):
    """An actor of a chain as shown."""

    sub = serializers.CharField()
    type = serializers.ChoiceField(choices=ACTOR_TYPES)


class DelegationSerializer(serializers.Serializer[IssuedDelegation]):
    """An issued token."""

    token = serializers.CharField(help_text="Compact JWS; shown once and kept nowhere.")
    chain = ChainActorSerializer(many=True, source="delegation.chain")
    principal = serializers.CharField(source="delegation.principal")
    scope = serializers.CharField(source="delegation.scope", allow_blank=True)
    issued_at = serializers.DateTimeField(source="delegation.issued")
    expires_at = serializers.DateTimeField(source="delegation.expires")


class ValidDelegationSerializer(serializers.Serializer[Verdict]):
    """What a token that counts says."""

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


class InvalidDelegationSerializer(serializers.Serializer[Verdict]):
    """Why a token does not count."""

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
    """A JWK Set."""

    keys = JwkSerializer(many=True)


def grant_from(data: dict[str, Any]) -> Grant:
    """The grant that the validated body of `IssueDelegationSerializer` asks for."""
    ttl = data.get("ttl_seconds")
    return Grant(
        chain=tuple(ChainActor(actor["sub"], ActorType(actor["type"])) for actor in data["chain"]),
        scope=tokens.normalised_scope(data.get("scope") or ""),
        audience=data.get("audience"),
        ttl=DEFAULT_TTL if ttl is None else timedelta(seconds=ttl),
        parent_token=data.get("parent_token"),
    )
