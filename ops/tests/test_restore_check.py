"""`restore_check` on real databases and tokens: what it says of each kind of loss."""

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.serialization import Encoding
from django.core.management import call_command
from pytest_django.fixtures import Settings

from auditlog.sealing import keys as log_keys
from auditlog.sealing.tree import latest_checkpoint
from auditlog.tests.factories import make_entries, seal_and_sign
from auditlog.tests.logs import empty_log, make_log, roll_back
from auditlog.tlog.notes import Note
from certificates.issuing import key_pool
from certificates.lists import publication
from certificates.lists.resuming import parse_list, recognized
from certificates.models import Certificate, CertificateAuthority
from certificates.tests.factories import lost, make_authorities, make_certified_agent, revoke_certificate
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from compliance.core.identifiers import new_id
from compliance.keys.registry import backend_for
from delegation.tests.factories import make_token_key
from ops.restoring import checks, signing
from ops.restoring.checks import KeptElsewhere
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_tenant
from webhooks.tests.factories import make_delivery, make_webhook


def run(*arguments: str) -> tuple[dict[str, dict[str, Any]], int]:
    """What the command finds in live, by check, and its exit code."""
    out, code = io.StringIO(), 0
    try:
        fixed = ("--environment", "live", "--json")
        call_command("restore_check", *fixed, *arguments, stdout=out, stderr=io.StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    return {each["check"]: each for each in json.loads(out.getvalue())}, code


def published() -> x509.CertificateRevocationList:
    authority = CertificateAuthority.objects.issuing()
    found = publication.publish(authority_id=authority.id, actor=ACTOR, now=now(), force=True)
    assert found is not None
    return parse_list(found.der)


def test_sound_installation_passes_what_was_kept_of_it(tmp_path: Path) -> None:
    tenant = make_tenant()
    make_certified_agent(tenant)
    make_token_key()
    make_webhook(tenant)
    (tmp_path / "crl").write_bytes(published().public_bytes(Encoding.DER))
    (tmp_path / "checkpoint").write_text(seal_and_sign().note)

    found, _ = run("--against", str(tmp_path / "checkpoint"), "--list", str(tmp_path / "crl"))

    own = {"moment", "tenants", "log verifies", "log and witnesses", "service's keys sign", "list numbers"}
    own |= {"agents' keys sign", "secrets", "webhooks", "idempotency"}
    assert {name: found[name]["detail"] for name in sorted(own) if not found[name]["ok"]} == {}
    assert "compared with no published list" not in found["list numbers"]["detail"]


def test_log_without_its_last_entries_is_rolled_back(owned: None) -> None:
    empty_log()
    make_log(3)
    make_log(4)
    newest = latest_checkpoint()
    assert newest is not None
    roll_back(3)

    found = checks.log_verifies([("kept", Note.parse(newest.note))], now())

    assert f"rolled back: kept states {newest.size} leaves" in found.problem
    assert found.remedy == checks.ROLLED_BACK
    assert checks.log_verifies([], now()).problem == ""


def test_certificate_whose_key_is_gone_does_not_sign() -> None:
    certificate = Certificate.objects.get(agent=make_certified_agent(make_tenant()))
    gone = key_pool.generate(now=now())
    backend_for(Environment.LIVE).destroy(gone.uri)
    Certificate.objects.filter(id=certificate.id).update(kms_key_arn=gone.uri)

    found = signing.of_agents(10, now())

    assert f"certificate {certificate.serial_number}" in found.problem()


def test_key_of_another_certificate_is_noticed() -> None:
    tenant = make_tenant()
    first, second = (Certificate.objects.get(agent=make_certified_agent(tenant)) for _ in range(2))
    Certificate.objects.filter(id=first.id).update(kms_key_arn="pkcs11:token=none;id=%01;type=private")
    Certificate.objects.filter(id=second.id).update(kms_key_arn=first.kms_key_arn)

    found = signing.of_agents(10, now())

    assert f"{second.serial_number}: the signature is another key's" in found.problem()


def test_half_of_the_sample_is_the_newest_certificates() -> None:
    tenant = make_tenant()
    for _ in range(3):
        make_certified_agent(tenant)

    assert signing.of_agents(2, now()).made == 2
    assert signing.of_agents(9, now()).made == 3


def test_keys_of_authorities_tokens_and_log_sign() -> None:
    make_authorities()
    make_token_key()
    make_entries()
    seal_and_sign()

    found = signing.of_the_service(now())

    # Root, issuing CA, its OCSP responder, the token key (and perhaps the next one), the log's key.
    assert found.failed == []
    assert found.made >= 5


def test_published_list_with_a_later_number_is_noticed() -> None:
    authority = make_authorities()
    with lost():
        crl = published()
    kept = recognized(crl)
    assert kept is not None

    found = checks.lists_continue([kept], now())

    ends = f"the database ends at {authority.crl_number}"
    assert found.problem == f"list {kept.number} of {authority.common_name} was published, {ends}"


def test_lost_revocation_is_noticed() -> None:
    agent = make_certified_agent(make_tenant())
    with lost():
        revoke_certificate(Certificate.objects.get(agent=agent))
        crl = published()
    kept = recognized(crl)
    assert kept is not None

    assert "1 lost revocation" in checks.lists_continue([kept], now()).problem


def test_list_of_a_stranger_is_refused() -> None:
    make_authorities()
    with environments.use(Environment.TEST):
        make_authorities()
        crl = published()

    with pytest.raises(Invalid):
        checks.examine(chosen=[Environment.LIVE], evidence=KeptElsewhere(lists=[crl]), sample=1, now=now())


def test_checkpoint_of_a_strange_log_is_refused() -> None:
    make_entries()
    note = seal_and_sign().note.replace(log_keys.origin(), "strange.example/log")
    evidence = KeptElsewhere([("kept", Note.parse(note))])

    with pytest.raises(Invalid):
        checks.examine(chosen=[Environment.LIVE], evidence=evidence, sample=1, now=now())


def test_secret_of_another_installation_is_noticed(settings: Settings) -> None:
    webhook = make_webhook(make_tenant())
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    assert checks.secrets_open(now()).problem == "1 of webhooks_webhook.secret"
    assert webhook.secret_hint


def test_tenant_of_the_sandbox_alone_is_noticed() -> None:
    with environments.use(Environment.TEST):
        Tenant.objects.create(id=new_id(), name="Later", created_at=now())

        assert checks.tenants_mirrored(now()).problem == "1 tenant unknown in live"


def test_waiting_deliveries_are_counted() -> None:
    make_delivery(make_webhook(make_tenant()))

    assert checks.webhooks_waiting(now() + timedelta(hours=1)).detail.startswith("1 delivery will be sent")
