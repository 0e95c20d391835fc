"""Trusted issuers for tests."""

from typing import Any

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from delegation.issuers import services
from delegation.issuers.models import TrustedIssuer
from delegation.issuers.tests.providers import CLIENT_ID
from tenancy.models import Tenant

ACTOR = Actor.system("tests")


def make_issuer(tenant: Tenant, issuer: str, **fields: Any) -> TrustedIssuer:
    """An issuer that the tenant trusts in the current environment."""
    given = {
        "audiences": [CLIENT_ID],
        "algorithms": ["RS256", "ES256"],
        "subject_claim": "email",
        "max_age_seconds": 3600,
        **fields,
    }
    return services.create(tenant_id=tenant.id, issuer=issuer, **given, actor=ACTOR, now=now())
