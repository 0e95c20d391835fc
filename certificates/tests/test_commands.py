"""The room's commands."""

import io
import json
from typing import Any

import pytest
from django.core.management import call_command

from agents.tests.factories import make_agent
from certificates.management.commands.cert_lint import findings
from certificates.models import Certificate, CertificateAuthority, PooledKey, RevocationList
from certificates.tests.factories import make_authorities, make_certificate, make_overdue_certificate
from compliance.core import environments
from compliance.core.environments import Environment
from tenancy.models import Tenant


def run(*arguments: str) -> Any:
    out = io.StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.mark.usefixtures("authority")
def test_ca_init_is_repeatable() -> None:
    first, second = run("ca_init"), run("ca_init")

    assert first == second
    assert first["serial_number"] == CertificateAuthority.objects.issuing().serial_number


def test_ca_show_lists_the_environments_cas() -> None:
    with environments.use(Environment.TEST):
        make_authorities()

    shown = run("ca_show", "--environment", "test")

    assert {item["role"] for item in shown} == {"root", "issuing"}
    assert run("ca_show") == []


@pytest.mark.usefixtures("authority")
def test_crl_generate_publishes_with_rising_numbers() -> None:
    first, second = run("crl_generate"), run("crl_generate")

    assert len(first) == 2
    assert [item["number"] for item in second] == [item["number"] + 1 for item in first]
    assert run("crl_generate", "--if-due") == []


def test_key_pool_fill_fills_up_to_the_size() -> None:
    assert run("key_pool_fill", "--size", "2") == {"environment": "live", "made": 2, "waiting": 2}
    assert run("key_pool_fill", "--size", "2")["made"] == 0
    assert PooledKey.objects.count() == 2


def ends_with(code: int, *arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command(*arguments, stdout=io.StringIO(), stderr=io.StringIO())
    assert ended.value.code == code


def test_life_of_a_certificate_by_commands(tenant: Tenant) -> None:
    agent = make_agent(tenant)
    make_authorities()

    issued = run("cert_issue", "--agent", str(agent.id))
    renewed = run("cert_issue", "--agent", str(agent.id), "--renew")
    serial = renewed["serial_number"]
    revoked = run("cert_revoke", "--serial", serial.upper(), "--reason", "keyCompromise: lost")

    assert (revoked["status"], revoked["code"]) == ("revoked", "keyCompromise")
    assert (
        revoked["crl_number"]
        == RevocationList.objects.latest_of(CertificateAuthority.objects.issuing()).number
    )
    shown = run("cert_show", "--agent", str(agent.id))
    assert [(row["serial_number"], row["revocation_code"]) for row in shown] == [
        (serial, "keyCompromise"), (issued["serial_number"], "superseded"),
    ]  # fmt: skip
    one = run("cert_show", "--serial", ":".join(serial[i : i + 2] for i in range(0, 40, 2)))
    assert one["pem"].startswith("-----BEGIN CERTIFICATE-----")
    assert one["Public key"].endswith("2048")
    ends_with(4, "cert_revoke", "--serial", serial, "--reason", "again")
    ends_with(3, "cert_show", "--serial", "nonsense")
    ends_with(3, "cert_issue", "--agent", "nonsense")


def test_overdue_certificates_are_expired_by_command(tenant: Tenant) -> None:
    make_overdue_certificate(tenant)

    assert run("cert_expire")["expired"] == 1
    assert run("cert_expire")["expired"] == 0


def test_lint_finds_nothing_in_what_is_issued(tenant: Tenant) -> None:
    agent = make_agent(tenant, name="名前 " + "x" * 90, metadata={"permitted_actions": ["read"]})
    certificate = make_certificate(agent)
    make_certificate(make_agent(tenant, model=None, version=None))

    assert run("cert_lint") == []
    assert run("cert_lint", "--serial", certificate.serial_number)[0]["findings"] == []


def test_lint_finds_rows_and_certificates_that_differ(tenant: Tenant) -> None:
    certificate, other = make_certificate(make_agent(tenant)), make_certificate(make_agent(tenant))
    Certificate.objects.filter(id=certificate.id).update(certificate_pem=other.certificate_pem)
    Certificate.objects.filter(id=other.id).update(certificate_pem="nonsense")

    ends_with(6, "cert_lint")
    certificate.refresh_from_db()
    assert "the serial number differs from the row's" in findings(certificate)
    other.refresh_from_db()
    assert findings(other)[0].startswith("can't be read")
