"""`POST /v1/agents/{id}/certify`."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings as configured
from pytest_django.fixtures import Settings

from agents.models import Agent, AgentStatus
from agents.tests.factories import ACTOR, make_agent, make_retired_agent, make_suspended_agent
from auditlog.models import AuditEntry
from certificates.issuing import key_pool
from certificates.models import Certificate, CertificateAuthority, Issuance, PooledKey, RevocationList
from certificates.pki.serials import environment_of, parse_serial
from certificates.pki.x509 import CertificateProfile, read_claims
from certificates.tests import outside
from certificates.tests.factories import (
    make_authorities,
    make_certified_agent,
    make_overdue_certificate,
    stock_pool,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.keys.registry import backend_for
from compliance.tests.client import ApiClient
from tenancy import services as tenancy
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant, make_test_key
from webhooks.models import Message


@pytest.fixture(autouse=True)
def stocked(authority: CertificateAuthority) -> None:
    """A CA, and one key in the pool: to generate one takes a quarter of a second."""
    stock_pool()


def certify(client: ApiClient, agent: Agent, **headers: str) -> Any:
    return client.post(f"/v1/agents/{agent.id}/certify", **headers)


def test_pending_agent_gets_a_certificate_and_becomes_active(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    answer = certify(client, agent)

    assert answer.status_code == 201
    data = answer.json()["data"]
    assert set(data) == {
        "id", "agent_id", "serial_number", "kms_key_arn", "certificate_pem", "status", "issued_at",
        "expires_at", "revoked_at", "revocation_reason", "key_storage", "superseded_at",
    }  # fmt: skip
    assert (data["status"], data["revoked_at"], data["revocation_reason"]) == ("active", None, None)
    assert data["agent_id"] == str(agent.id)
    assert data["kms_key_arn"].startswith("pkcs11:token=")
    agent.refresh_from_db()
    assert agent.status == AgentStatus.ACTIVE


def test_certificate_says_what_the_answer_says(client: ApiClient, tenant: Tenant) -> None:
    actions = ["read_market_data", "place_order"]
    agent = make_agent(
        tenant, name="trade-bot", model="gpt-5", version="2.1", metadata={"permitted_actions": actions}
    )

    data = certify(client, agent).json()["data"]

    certificate = x509.load_pem_x509_certificate(data["certificate_pem"].encode())
    claims = read_claims(certificate, CertificateProfile(configured.OID_ARC))
    assert f"{certificate.serial_number:x}" == data["serial_number"]
    assert claims.operator == "Example Trading GmbH"
    assert (claims.model, claims.model_version, claims.model_hash) == ("gpt-5", "2.1", "sha256:ab")
    assert claims.permitted_actions == tuple(actions)
    assert claims.did == agent.did
    assert certificate.not_valid_after_utc - now() < timedelta(days=365)


def test_certificate_passes_every_judge(client: ApiClient, tenant: Tenant, tmp_path: Path) -> None:
    pem = certify(client, make_agent(tenant, name="名前 \u202e" + "x" * 200)).json()["data"][
        "certificate_pem"
    ]
    leaf = x509.load_pem_x509_certificate(pem.encode())
    chain = [x509.load_der_x509_certificate(bytes(ca.certificate_der)) for ca in authorities()]
    lists = [bytes(RevocationList.objects.latest_of(ca).der) for ca in authorities()]
    paths = [tmp_path / name for name in ("root", "issuing", "leaf")]
    for path, certificate in zip(paths, [*chain, leaf], strict=True):
        outside.write_pem(path, certificate)
    for name, der in zip(("root.crl", "issuing.crl"), lists, strict=True):
        (tmp_path / name).write_bytes(der)

    assert [outside.pkilint_certificate(certificate) for certificate in (*chain, leaf)] == [[], [], []]
    assert [outside.pkilint_crl(der) for der in lists] == [[], []]
    crls: list[str | Path] = ["-CRLfile", tmp_path / "issuing.crl", "-CRLfile", tmp_path / "root.crl"]
    trusted: list[str | Path] = ["-CAfile", paths[0], "-untrusted", paths[1]]
    assert outside.openssl("verify", "-x509_strict", "-crl_check_all", *crls, *trusted, paths[2])
    found = outside.java_pkix(
        paths[0], [paths[2], paths[1]], [tmp_path / "issuing.crl", tmp_path / "root.crl"]
    )
    assert found == "valid"


def authorities() -> list[CertificateAuthority]:
    """Root, then issuing."""
    return list(CertificateAuthority.objects.order_by("-role"))


def test_issuance_is_recorded_audited_and_announced(client: ApiClient, tenant: Tenant) -> None:
    client.post("/v1/webhooks", {"url": "https://hooks.example.com/x", "events": ["certificate.issued"]})
    agent = make_agent(tenant)

    data = certify(client, agent).json()["data"]

    assert Issuance.objects.get(serial_number=data["serial_number"]).state == "completed"
    entry = AuditEntry.objects.about(data["id"]).get()
    assert (entry.event_type, entry.actor_type) == ("certificate.issued", "user")
    assert entry.metadata is not None
    assert entry.metadata["agent_id"] == str(agent.id)
    assert [message.event for message in Message.objects.filter(tenant=tenant)] in (
        [],
        ["certificate.issued"],
    )


@pytest.mark.parametrize(
    ("make", "status", "error"),
    [
        (make_certified_agent, 409, "Agent already has an active certificate"),
        (make_retired_agent, 422, "Cannot certify a retired agent"),
        (make_suspended_agent, 422, "Cannot certify a suspended agent"),
    ],
)
def test_agent_that_may_not_be_certified_is_refused(
    client: ApiClient, tenant: Tenant, make: Any, status: int, error: str
) -> None:
    answer = certify(client, make(tenant))

    assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_agent_without_an_owner_is_422_where_the_tenant_requires_one(
    client: ApiClient, tenant: Tenant
) -> None:
    orphan, renewed = make_agent(tenant), make_agent(tenant)
    certify(client, renewed)
    tenancy.change_setting(
        name="owner_required", tenant_id=tenant.id, value=True, reason="policy", actor=ACTOR, now=now()
    )

    refused = certify(client, orphan)
    client.patch(f"/v1/agents/{orphan.id}", {"owner": {"name": "Kim Berg", "email": "kim@example.com"}})
    made = certify(client, orphan)

    assert (refused.status_code, "with an owner" in refused.json()["error"]) == (422, True)
    assert made.status_code == 201
    certificate = x509.load_pem_x509_certificate(made.json()["data"]["certificate_pem"].encode())
    assert b"kim@" not in certificate.public_bytes(Encoding.DER)
    assert client.post(f"/v1/agents/{renewed.id}/renew").status_code == 201
    told = AuditEntry.objects.about(tenant.id).of_type("tenant.owner_required_changed")
    assert told.get().metadata == {"before": False, "after": True, "reason": "policy"}


def test_expired_certificate_makes_room_for_a_new_one(client: ApiClient, tenant: Tenant) -> None:
    old = make_overdue_certificate(tenant)
    stock_pool()

    answer = client.post(f"/v1/agents/{old.agent_id}/certify")

    assert answer.status_code == 201
    assert answer.json()["data"]["serial_number"] != old.serial_number
    old.refresh_from_db()
    assert old.status == "expired"


def test_drained_pool_generates_on_the_spot(client: ApiClient, tenant: Tenant) -> None:
    PooledKey.objects.all().delete()

    assert certify(client, make_agent(tenant)).status_code == 201


def test_tenant_that_takes_many_keys_leaves_others_half_of_the_pool(
    api: ApiClient, client: ApiClient, tenant: Tenant, settings: Settings
) -> None:
    settings.KEY_POOL_SIZE = 6
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "pool_keys": 2}
    for _ in range(5):
        stock_pool()
    for _ in range(5):
        assert certify(client, make_agent(tenant)).status_code == 201
    left, other = PooledKey.objects.count(), make_tenant("Other")

    answer = certify(api.as_key(make_key(other)), make_agent(other))

    assert answer.status_code == 201
    assert (left, PooledKey.objects.count()) == (3, 2)


def test_tenant_has_its_share_of_keys_made_at_once(
    api: ApiClient, client: ApiClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_pool, "WAIT_SECONDS", 0.0)
    PooledKey.objects.all().delete()
    agent, other = make_agent(tenant), make_tenant("Other")
    with key_pool.GENERATING.take(tenant.id):
        refused = certify(client, agent)
        served = certify(api.as_key(make_key(other)), make_agent(other))

    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
    assert served.status_code == 201
    assert certify(client, agent).status_code == 201


def test_high_risk_agent_gets_a_shorter_certificate(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)
    Agent.objects.filter(id=agent.id).update(risk_score=0.85)

    serial = certify(client, agent).json()["data"]["serial_number"]

    lifetime = Certificate.objects.get(serial_number=serial).expires_at - now()
    assert timedelta(days=29) < lifetime < timedelta(days=30)


def test_lifetime_never_exceeds_365_days(client: ApiClient, tenant: Tenant, settings: Settings) -> None:
    settings.CERTIFICATE_VALIDITY = timedelta(days=4_000)

    serial = certify(client, make_agent(tenant)).json()["data"]["serial_number"]

    certificate = Certificate.objects.get(serial_number=serial)
    assert certificate.expires_at - certificate.issued_at < timedelta(days=365)


def test_same_idempotency_key_gives_the_same_certificate(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    first, second = (certify(client, agent, Idempotency_Key="once") for _ in range(2))

    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert Certificate.objects.of_agent(agent.id).count() == 1


def test_missing_authority_is_503(client: ApiClient, tenant: Tenant) -> None:
    CertificateAuthority.objects.update(retired_at=now())

    answer = certify(client, make_agent(tenant))

    assert (answer.status_code, answer.json()) == (503, {"error": "KMS not configured"})


def test_lost_ca_key_is_503_and_leaves_no_half_certified_agent(client: ApiClient, tenant: Tenant) -> None:
    lost = backend_for(Environment.LIVE).generate_rsa(label="lost")
    backend_for(Environment.LIVE).destroy(lost.uri)
    CertificateAuthority.objects.filter(role="issuing").update(key_uri=lost.uri)
    agent = make_agent(tenant)
    pooled = PooledKey.objects.get()

    answer = certify(client, agent)

    assert answer.status_code == 503
    agent.refresh_from_db()
    assert agent.status == AgentStatus.PENDING
    assert not Certificate.objects.of_agent(agent.id).exists()
    assert Issuance.objects.get(agent=agent).state == "failed"
    assert PooledKey.objects.filter(key_uri=pooled.key_uri).exists()


def test_sandbox_has_its_own_ca_token_and_serials(api: ApiClient, tenant: Tenant) -> None:
    with environments.use(Environment.TEST):
        authority = make_authorities()
        agent = make_agent(tenant)

    data = api.as_key(make_test_key(tenant)).post(f"/v1/agents/{agent.id}/certify").json()["data"]

    number = parse_serial(data["serial_number"])
    assert number is not None
    assert environment_of(number) is Environment.TEST
    certificate = x509.load_pem_x509_certificate(data["certificate_pem"].encode())
    certificate.verify_directly_issued_by(x509.load_der_x509_certificate(bytes(authority.certificate_der)))
    assert not Certificate.objects.filter(serial_number=data["serial_number"]).exists()
