"""Certificates in and out of the API."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.models import AgentStatus
from agents.risk import BANDS, band_of
from certificates.models import AuthorityRole, AuthorityState, Certificate, CertificateStatus, Standing
from certificates.verification import (
    CERTIFICATE_EXPIRED,
    CERTIFICATE_REVOKED,
    INVALID_SIGNATURE,
    Verification,
)
from compliance.api.fields import StrictCharField
from compliance.environments import Environment

MAX_SIGNATURE_LENGTH = 4_096


class ReasonInputSerializer(serializers.Serializer[Any]):
    """Why a certificate ends."""

    reason = StrictCharField(
        max_length=500,
        help_text="A name of RFC 5280 §5.3.1 in front (`keyCompromise: …`) also sets the code on the list.",
    )


class CertificateSerializer(serializers.Serializer[Certificate]):
    """A Certificate of the interface specification; pass `context={"now": …}`, by which its state is told."""

    id = serializers.UUIDField()
    agent_id = serializers.UUIDField()
    serial_number = serializers.CharField(help_text="40 lowercase hex digits")
    kms_key_arn = serializers.CharField(help_text="PKCS#11 URI (RFC 7512) of the managed key")
    certificate_pem = serializers.CharField()
    status = serializers.SerializerMethodField()
    issued_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)
    revocation_reason = serializers.CharField(allow_null=True)

    @extend_schema_field(serializers.ChoiceField(choices=CertificateStatus.choices))
    def get_status(self, certificate: Certificate) -> str:
        return certificate.status_at(self.context["now"]).value


def shown_certificate(certificate: Certificate, now: datetime) -> dict[str, Any]:
    """A certificate as `CertificateSerializer` shows it, many times faster."""
    return {
        "id": certificate.id,
        "agent_id": certificate.agent_id,
        "serial_number": certificate.serial_number,
        "kms_key_arn": certificate.kms_key_arn,
        "certificate_pem": certificate.certificate_pem,
        "status": certificate.status_at(now).value,
        "issued_at": certificate.issued_at,
        "expires_at": certificate.expires_at,
        "revoked_at": certificate.revoked_at,
        "revocation_reason": certificate.revocation_reason,
    }


class RevocationSerializer(serializers.Serializer[Certificate]):
    """The answer to a revocation."""

    certificate_id = serializers.UUIDField(source="id")
    status = serializers.CharField(help_text="`revoked`")
    revoked_at = serializers.DateTimeField()
    reason = serializers.CharField(source="revocation_reason")


class ScopeSerializer(serializers.Serializer[Any]):
    """What the certificate lets the agent do."""

    permitted_actions = serializers.ListField(child=serializers.CharField())


class PastStandingSerializer(serializers.Serializer[Any]):
    """What the certificate was worth at the time asked for; the agent's status of then is not told."""

    time = serializers.DateTimeField()
    valid = serializers.BooleanField()
    standing = serializers.ChoiceField(choices=Standing.choices)
    revoked_since = serializers.BooleanField(help_text="Valid then, revoked later")


class VerificationSerializer(serializers.Serializer[Any]):
    """A `Verification`, to anyone: what was signed of the agent, and how it stands now."""

    serial_number = serializers.CharField(source="certificate.serial_number")
    status = serializers.ChoiceField(choices=CertificateStatus.choices)
    agent_id = serializers.UUIDField(source="certificate.agent_id")
    agent_status = serializers.ChoiceField(choices=AgentStatus.choices, source="certificate.agent.status")
    issued_at = serializers.DateTimeField(source="certificate.issued_at")
    expires_at = serializers.DateTimeField(source="certificate.expires_at")
    not_before = serializers.DateTimeField(source="certificate.not_before")
    not_after = serializers.DateTimeField(source="certificate.expires_at")
    revoked_at = serializers.DateTimeField(source="certificate.revoked_at", allow_null=True)
    revocation_reason = serializers.CharField(
        source="certificate.revocation_reason",
        allow_null=True,
        help_text="`certificateHold` while the agent is suspended, unless it was revoked for good",
    )
    operator = serializers.CharField(source="certificate.claims.operator")
    did = serializers.CharField(source="certificate.claims.did")
    model = serializers.CharField(source="certificate.claims.model", allow_null=True)
    model_version = serializers.CharField(source="certificate.claims.model_version", allow_null=True)
    model_hash = serializers.CharField(source="certificate.claims.model_hash", allow_null=True)
    permitted_actions = serializers.SerializerMethodField()
    scope = serializers.SerializerMethodField()
    scope_declared = serializers.SerializerMethodField()
    risk_score = serializers.FloatField(source="certificate.agent.risk_score")
    risk_band = serializers.SerializerMethodField()
    environment = serializers.ChoiceField(choices=[member.value for member in Environment])
    at = PastStandingSerializer(required=False, help_text="Only where `at` was asked for")

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown = super().to_representation(instance)
        if shown["at"] is None:
            del shown["at"]
        return shown

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_permitted_actions(self, found: Any) -> list[str]:
        return found.certificate.claims["permitted_actions"] or []

    @extend_schema_field(ScopeSerializer)
    def get_scope(self, found: Any) -> dict[str, list[str]]:
        return {"permitted_actions": self.get_permitted_actions(found)}

    @extend_schema_field(serializers.ChoiceField(choices=BANDS))
    def get_risk_band(self, found: Any) -> str:
        return band_of(found.certificate.agent.risk_score)

    def get_scope_declared(self, found: Any) -> bool:
        """False when the agent declared no scope at all, which `permitted_actions` can't tell."""
        return found.certificate.claims["permitted_actions"] is not None


def shown_verification(found: Verification) -> dict[str, Any]:
    """A verification as `VerificationSerializer` shows it, many times faster."""
    certificate, agent = found.certificate, found.certificate.agent
    claims = certificate.claims
    actions = claims["permitted_actions"]
    shown: dict[str, Any] = {
        "serial_number": certificate.serial_number,
        "status": found.status,
        "agent_id": certificate.agent_id,
        "agent_status": agent.status,
        "issued_at": certificate.issued_at,
        "expires_at": certificate.expires_at,
        "not_before": certificate.not_before,
        "not_after": certificate.expires_at,
        "revoked_at": certificate.revoked_at,
        "revocation_reason": certificate.revocation_reason,
        "operator": claims["operator"],
        "did": claims["did"],
        "model": claims["model"],
        "model_version": claims["model_version"],
        "model_hash": claims["model_hash"],
        "permitted_actions": actions or [],
        "scope": {"permitted_actions": actions or []},
        "scope_declared": actions is not None,
        "risk_score": agent.risk_score,
        "risk_band": band_of(agent.risk_score),
        "environment": found.environment.value,
    }
    if found.at is not None:
        shown["at"] = PastStandingSerializer(found.at).data
    return shown


class VerifyMessageInputSerializer(serializers.Serializer[Any]):
    """A message and its signature, as `POST /v1/agents/{id}/sign` gave it."""

    payload = serializers.JSONField(allow_null=True)
    signature = StrictCharField(max_length=MAX_SIGNATURE_LENGTH)
    certificate_serial = StrictCharField(max_length=200)


class MessageVerificationSerializer(serializers.Serializer[Any]):
    """A `MessageVerification`; branch on `valid`."""

    valid = serializers.BooleanField()
    reason = serializers.ChoiceField(
        choices=[INVALID_SIGNATURE, CERTIFICATE_REVOKED, CERTIFICATE_EXPIRED], required=False
    )
    agent_id = serializers.UUIDField(source="certificate.agent_id")
    certificate_serial = serializers.CharField(source="certificate.serial_number")
    certificate_status = serializers.ChoiceField(choices=CertificateStatus.choices, source="status")
    payload_hash = serializers.CharField(help_text="`sha256:` and the digest of the RFC 8785 form")
    algorithm = serializers.CharField()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown = super().to_representation(instance)
        if shown["reason"] is None:
            del shown["reason"]
        return shown


class AuthoritySerializer(serializers.Serializer[Any]):
    """One CA of the chain."""

    role = serializers.ChoiceField(choices=AuthorityRole.choices)
    status = serializers.ChoiceField(
        choices=AuthorityState.choices,
        help_text="`active` issues; `retiring` only signs its revocation lists; the others do nothing more",
    )
    subject = serializers.CharField(help_text="As in RFC 4514")
    common_name = serializers.CharField()
    serial_number = serializers.CharField()
    not_before = serializers.DateTimeField()
    not_after = serializers.DateTimeField()
    certificate_url = serializers.CharField()
    crl_url = serializers.CharField()
    sha256_fingerprint = serializers.CharField()
    pem = serializers.CharField()


class ChainSerializer(serializers.Serializer[Any]):
    """The CAs of an environment, the one in service first, then newest first."""

    environment = serializers.ChoiceField(choices=[member.value for member in Environment])
    chain_pem = serializers.CharField(help_text="The issuing CA in service, then its root")
    certificates = AuthoritySerializer(many=True)
