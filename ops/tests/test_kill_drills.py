"""`kill -9` anywhere in issuance, in publishing lists and in rotation; what is left must be in order."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from django.db import connection

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from auditlog.tests import factories as auditlog_made
from certificates.issuing import issuance, key_pool
from certificates.lists import publication
from certificates.models import Certificate, CertificateAuthority, Issuance, PooledKey, RevocationList
from certificates.tests import factories as certificates_made
from certificates.tests.factories import make_authorities, make_certificate, revoke_certificate
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.keys.base import KeyNotFound
from compliance.keys.registry import backend_for
from compliance.tests.waiting import eventually
from delegation.tests import factories as delegation_made
from ops import key_inventory
from ops.doctor import Finding, examine
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_tenant

KILLS = 50
ROTATION_STEPS = (*range(1, 24), *range(24, 1_000, 20))
"""All up to the commit, then some of those that make the new CA's lists and responder."""
PUBLICATION_STEPS = (*range(1, 40), *range(40, 1_000, 12))
LATER = timedelta(hours=2)
SCRIPT = Path(__file__).with_name("killed_alone.py")

pytestmark = [pytest.mark.drill, pytest.mark.usefixtures("committed")]


@pytest.fixture(autouse=True)
def keys_forgotten() -> Iterator[None]:
    """These tests destroy what other tests made and no row names."""
    yield
    for factories in (auditlog_made, certificates_made, delegation_made):
        factories.forget_keys()


class Victims:
    """Processes that do one thing each and are killed in it."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server

    def _begin(self, *what: object) -> int:
        assert self._server.stdin is not None
        self._server.stdin.write(" ".join(map(str, what)) + "\n")
        self._server.stdin.flush()
        return self._line()

    def _line(self) -> int:
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())

    def dies_at(self, step: int, *what: object) -> bool:
        """Return whether it died at this step; it may have been through before."""
        self._begin(step, *what)
        code = self._line()
        assert code in (0, -signal.SIGKILL)
        return code != 0

    def dies_after(self, seconds: float, *what: object) -> bool:
        """Return whether it was still at it by then."""
        process = self._begin(0, *what)
        time.sleep(seconds)
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        return self._line() == -signal.SIGKILL


@pytest.fixture
def victims() -> Iterator[Victims]:
    command = [sys.executable, str(SCRIPT), str(connection.settings_dict["NAME"])]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path.cwd(),
        env=os.environ | {"CRL_SHARDS": "2", "LOG_LEVEL": "ERROR"},
    ) as server:
        yield Victims(server)
        assert server.stdin is not None
        server.stdin.close()


def found(*, fix: bool) -> dict[str, Finding]:
    """What `doctor` finds two hours from now, when nothing can be under way any more."""
    findings = examine(chosen=[Environment.LIVE], fix=fix, now=now() + LATER)
    return {finding.check: finding for finding in findings}


def empty_pool() -> None:
    """Keys of earlier tests would be taken where a key is to be generated."""
    for pooled in PooledKey.objects.all():
        backend_for(Environment.LIVE).destroy(pooled.key_uri)
        pooled.delete()


def test_issuance(victims: Victims) -> None:
    empty_pool()
    make_authorities()
    tenant, kills, agents = make_tenant(), 0, list[Agent]()

    def certify(tenant: Tenant) -> tuple[str, object, object]:
        agents.append(make_agent(tenant))
        return "issue", tenant.id, agents[-1].id

    for is_warm in (False, True):
        for step in count(1):
            if is_warm:
                key_pool.fill(now=now(), size=1)
            if not victims.dies_at(step, *certify(tenant)):
                break
            kills += 1
    while kills < KILLS:
        kills += victims.dies_after(random.uniform(0.0, 0.4), *certify(tenant))

    before = {
        finding.uri for shelf in key_inventory.reconcile(now=now() + LATER) for finding in shelf.orphans
    }
    looked, destroyed = found(fix=False), destroyed_keys()
    mended = found(fix=True)
    destroyed = destroyed_keys() - destroyed
    sys.stderr.write(f"\n{kills} kills, {len(agents)} agents, {len(destroyed)} orphan keys\n")

    # One death lies between the key's making and the row that names it.
    assert before
    assert (looked["keys"].ok, looked["issuances"].ok) == (False, False)
    assert [name for name in ("keys", "issuances", "certificate authorities") if not mended[name].ok] == []
    # The HSM may finish a dead process's key after `before` was read.
    assert before <= destroyed
    assert mended["keys"].fixed == f"{len(destroyed)} keys destroyed"
    for uri in destroyed:
        with pytest.raises(KeyNotFound):
            backend_for(Environment.LIVE).public_key(uri)
        assert AuditEntry.objects.filter(event_type="key.destroyed", metadata={"key_uri": uri}).count() == 1
    assert_agents_are_certified_or_not(agents)
    for agent in [agent for agent in agents if not Certificate.objects.filter(agent=agent).exists()][:3]:
        issuance.issue(tenant_id=tenant.id, agent_id=agent.id, actor=ACTOR, now=now())
    assert all(shelf.is_sound for shelf in key_inventory.reconcile(now=now() + LATER))


def destroyed_keys() -> set[str]:
    """The URIs of all keys whose destruction is audited."""
    found = AuditEntry.objects.filter(event_type="key.destroyed")
    return set(found.values_list("metadata__key_uri", flat=True))


def assert_agents_are_certified_or_not(agents: list[Agent]) -> None:
    """Each intent has ended; a completed one has its certificate, whose key is its own; others' keys wait."""
    intents = list(Issuance.objects.filter(agent__in=agents))
    certificates = {one.serial_number: one for one in Certificate.objects.filter(agent__in=agents)}
    completed = {intent.serial_number for intent in intents if intent.state == "completed"}
    pooled = set(PooledKey.objects.values_list("key_uri", flat=True))
    used = {one.kms_key_arn for one in certificates.values()}

    assert {intent.state for intent in intents} <= {"completed", "failed"}
    assert completed == certificates.keys()
    assert used.isdisjoint(pooled)
    assert {intent.key_uri for intent in intents} <= used | pooled
    for serial, certificate in certificates.items():
        signed = x509.load_pem_x509_certificate(certificate.certificate_pem.encode())
        assert f"{signed.serial_number:x}" == serial
        assert signed.public_key() == backend_for(Environment.LIVE).public_key(certificate.kms_key_arn)
    certified = {one.agent_id for one in certificates.values()}
    for agent in Agent.objects.filter(id__in=[agent.id for agent in agents]):
        assert agent.status == ("active" if agent.id in certified else "pending")


def test_publication(victims: Victims) -> None:
    revoked = revoke_certificate(make_certificate(make_agent(make_tenant())))
    authority = revoked.authority
    publication.publish_due(actor=ACTOR, now=now())
    numbers = [served(authority).number]

    for step in PUBLICATION_STEPS:
        Certificate.objects.filter(id=revoked.id).update(first_crl_number=None)
        has_died = victims.dies_at(step, "publish", authority.id)
        numbers.append(served(authority).number)
        if not has_died:
            break
        if publication.lists_are_due(authority_id=authority.id, now=now()):
            # PostgreSQL takes a moment to notice that who held the lock is gone.
            assert eventually(lambda: publish(authority))
            numbers.append(served(authority).number)
            assert numbers[-1] > numbers[-2]

    kills = PUBLICATION_STEPS.index(step)
    sys.stderr.write(f"\n{kills} kills, at steps up to {step}; lists {numbers[0]} to {numbers[-1]}\n")
    assert not has_died
    assert kills > 10
    assert numbers == sorted(numbers)
    assert found(fix=False)["revocation lists"].ok


def publish(authority: CertificateAuthority) -> bool:
    return publication.publish(authority_id=authority.id, actor=ACTOR, now=now()) is not None


def served(authority: CertificateAuthority) -> RevocationList:
    """The list that is given out: whole, of the CA, and with what is revoked on it."""
    newest = RevocationList.objects.latest_of(authority)
    crl = x509.load_der_x509_crl(newest.der)
    issuer = x509.load_der_x509_certificate(bytes(authority.certificate_der)).public_key()
    assert isinstance(issuer, rsa.RSAPublicKey)
    assert crl.is_signature_valid(issuer)
    assert crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number == newest.number
    serials = {entry.serial_number for entry in crl}
    on_it = Certificate.objects.filter(
        authority=authority, status="revoked", first_crl_number__lte=newest.number
    )
    assert len(serials) == newest.entry_count
    assert serials >= {int(one.serial_number, 16) for one in on_it}
    return newest


def test_rotation(victims: Victims) -> None:
    certificate = make_certificate(make_agent(make_tenant()))
    old = certificate.authority
    began = CertificateAuthority.objects.count()

    for step in ROTATION_STEPS:
        has_died = victims.dies_at(step, "rotate")
        in_service = CertificateAuthority.objects.in_service().order_by("role")
        assert list(in_service.values_list("role", flat=True)) == ["issuing", "root"]
        if not has_died:
            break
        finish_lists()
    finish_lists()
    revoke_certificate(certificate)
    publication.publish_due(actor=ACTOR, now=now())
    made = CertificateAuthority.objects.count() - began
    kills = ROTATION_STEPS.index(step)
    sys.stderr.write(f"\n{kills} kills, at steps up to {step}; {made} new CAs\n")

    assert not has_died
    assert 1 < made < kills
    assert CertificateAuthority.objects.issuing() != old
    for authority in CertificateAuthority.objects.publishing(now()):
        assert served(authority).next_update > now()
    assert int(certificate.serial_number, 16) in {
        entry.serial_number for entry in x509.load_der_x509_crl(served(old).der)
    }
    new = make_certificate(make_agent(make_tenant()))
    assert new.authority == CertificateAuthority.objects.issuing()
    assert_doctor_is_content_once_a_person_destroyed_the_keys()


def finish_lists() -> None:
    """What beat does after the process has died."""
    publication.publish_due(actor=ACTOR, now=now())


def assert_doctor_is_content_once_a_person_destroyed_the_keys() -> None:
    """A CA's key that no row names is no command's to destroy by itself."""
    mended = found(fix=True)
    assert [name for name in ("certificate authorities", "revocation lists") if not mended[name].ok] == []
    left = [key for shelf in key_inventory.reconcile(now=now() + LATER) for key in shelf.orphans]
    assert left
    assert "agent" not in {key.label for key in left}
    for key in left:
        key_inventory.destroy(uri=key.uri, actor=ACTOR, now=now())
    assert found(fix=False)["keys"].ok
