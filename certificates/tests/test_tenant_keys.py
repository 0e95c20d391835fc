"""References between tenants' tables compare the tenants in joins."""

from agents.models import Agent
from certificates.models import Certificate


def test_join_of_a_reference_compares_the_tenants() -> None:
    statement = str(Certificate.objects.select_related("agent").query)

    assert '"agents_agent"."tenant_id" = ("certificates_certificate"."tenant_id")' in statement


def test_join_against_a_reference_compares_the_tenants() -> None:
    statement = str(Agent.objects.filter(certificates__serial_number="4f").query)

    assert '"agents_agent"."tenant_id" = ("certificates_certificate"."tenant_id")' in statement
