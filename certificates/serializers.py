"""The JSON of certificates, verification and CAs."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.models import AgentStatus
from agents.risk import BANDS, band_of
from certificates.models import (
    STORAGES,
    AuthorityRole,
    AuthorityState,
    Certificate,
    CertificateStatus,
    ValidityStatus,
)
from certificates.public.verification import Verification
from compliance.api.rest.fields import StrictCharField, StrictIntegerField
from compliance.core.environments import Environment

SHOWN_OF_ROW = ("serial_number", "agent_id", "issued_at", "expires_at", "revoked_at", "revocation_reason")
SHOWN_OF_CLAIMS = ("operator", "did", "model", "model_version", "model_hash")


class ReasonInputSerializer(serializers.Serializer[Any]):
    reason = StrictCharField(
        max_length=500,
        help_text=(
            "A name of RFC 5280 §5.3.1 in front, in any case (`keyCompromise: …`), also sets the code on the "
            "list. `certificateHold` (suspend the agent instead), `removeFromCRL`, `aACompromise`: 400."
        ),
    )


class RenewalSerializer(serializers.Serializer[Any]):
    """`POST …/renew`."""

    overlap_seconds = StrictIntegerField(
        min_value=0,
        max_value=604_800,
        default=0,
        help_text="How long the old certificate stays valid beside its successor, a week at most",
    )


class CertificateSerializer(serializers.Serializer[Certificate]):
    """A Certificate of the interface specification; `context={"now": …}` decides its status."""

    id = serializers.UUIDField()
    agent_id = serializers.UUIDField()
    serial_number = serializers.CharField(help_text="40 lowercase hex digits")
    kms_key_arn = serializers.CharField(help_text="PKCS#11 URI (RFC 7512) of the managed key")
    key_storage = serializers.ChoiceField(
        choices=STORAGES,
        help_text="Where the private key lies: `resident` in the HSM for good, or `wrapped`, encrypted by a "
        "key of the HSM and stored in the database",
    )
    certificate_pem = serializers.CharField()
    status = serializers.SerializerMethodField()
    issued_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)
    revocation_reason = serializers.CharField(allow_null=True)
    superseded_at = serializers.DateTimeField(
        allow_null=True, help_text="Set by a renewal: it is valid until then, and superseded afterwards"
    )

    @extend_schema_field(serializers.ChoiceField(choices=CertificateStatus.choices))
    def get_status(self, certificate: Certificate) -> str:
        return certificate.status_at(self.context["now"]).value


class RevocationSerializer(serializers.Serializer[Certificate]):
    certificate_id = serializers.UUIDField(source="id")
    status = serializers.CharField(help_text="`revoked`")
    revoked_at = serializers.DateTimeField()
    reason = serializers.CharField(source="revocation_reason")


class ScopeSerializer(serializers.Serializer[Any]):
    """The scope a certificate gives its agent."""

    permitted_actions = serializers.ListField(child=serializers.CharField())


class PastStandingSerializer(serializers.Serializer[Any]):
    """The status of the certificate at the requested time; the agent's status then is not known."""

    time = serializers.DateTimeField()
    valid = serializers.BooleanField()
    standing = serializers.ChoiceField(choices=ValidityStatus.choices)
    revoked_since = serializers.BooleanField(help_text="Valid then, revoked later")


class VerificationSerializer(serializers.Serializer[Any]):
    """The identity in a certificate, and its status now."""

    serial_number = serializers.CharField()
    status = serializers.ChoiceField(choices=CertificateStatus.choices)
    agent_id = serializers.UUIDField()
    agent_status = serializers.ChoiceField(choices=AgentStatus.choices)
    issued_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    not_before = serializers.DateTimeField()
    not_after = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)
    revocation_reason = serializers.CharField(
        allow_null=True, help_text="`certificateHold` if it is on hold, or ended on hold"
    )
    operator = serializers.CharField()
    did = serializers.CharField()
    model = serializers.CharField(allow_null=True)
    model_version = serializers.CharField(allow_null=True)
    model_hash = serializers.CharField(allow_null=True)
    permitted_actions = serializers.ListField(child=serializers.CharField(), read_only=True)
    scope = ScopeSerializer(read_only=True)
    scope_declared = serializers.BooleanField(
        read_only=True,
        help_text="False if the agent declared no scope, for which `permitted_actions` is empty too.",
    )
    risk_score = serializers.FloatField()
    risk_band = serializers.ChoiceField(choices=BANDS, read_only=True)
    environment = serializers.ChoiceField(choices=[member.value for member in Environment])
    at = PastStandingSerializer(required=False, help_text="Only where `at` was asked for")


def shown_verification(found: Verification) -> dict[str, Any]:
    """The JSON of a verification, as `VerificationSerializer` describes it."""
    certificate, agent, claims = found.certificate, found.certificate.agent, found.certificate.claims
    actions = claims["permitted_actions"]
    return {
        **{name: getattr(certificate, name) for name in SHOWN_OF_ROW},
        **{name: claims[name] for name in SHOWN_OF_CLAIMS},
        "status": found.status,
        "agent_status": agent.status,
        "not_before": certificate.not_before,
        "not_after": certificate.expires_at,
        "permitted_actions": actions or [],
        "scope": {"permitted_actions": actions or []},
        "scope_declared": actions is not None,
        "risk_score": agent.risk_score,
        "risk_band": band_of(agent.risk_score),
        "environment": found.environment.value,
        **({"at": PastStandingSerializer(found.at).data} if found.at else {}),
    }


class AuthoritySerializer(serializers.Serializer[Any]):
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
