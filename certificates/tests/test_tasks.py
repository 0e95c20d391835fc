"""The room's tasks: safe to run twice, and at ease without the HSM."""

from typing import Any

import pytest
from django.db import connections
from pytest_django.fixtures import Settings

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates import tasks
from certificates.issuing import key_pool
from certificates.lists import publication
from certificates.models import CertificateAuthority, PooledKey, RevocationList
from certificates.tests.factories import make_intent, make_overdue_certificate, make_revoked_certificate
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.keys.registry import backend_for, reset
from compliance.stores.session_locks import TurnLock
from tenancy.models import Tenant


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_agent(tenant)


ALL = (
    tasks.publish_due_crls,
    tasks.sweep_ends,
    tasks.fill_key_pool,
    tasks.settle_unfinished,
    tasks.maintain_responders,
)


def run(task: Any, **kwargs: Any) -> None:
    task.apply(kwargs=kwargs, headers={ENVIRONMENT_HEADER: Environment.LIVE.value}, throw=True)


def lose_key(authority: CertificateAuthority) -> None:
    """Let the CA's key be one that the token no longer has."""
    lost = backend_for(Environment.LIVE).generate_rsa(label="lost")
    backend_for(Environment.LIVE).destroy(lost.uri)
    CertificateAuthority.objects.filter(id=authority.id).update(key_uri=lost.uri)


def test_list_is_published_once_for_a_revocation(tenant: Tenant) -> None:
    certificate = make_revoked_certificate(tenant)
    before = RevocationList.objects.latest_of(certificate.authority).number

    for _ in range(2):
        run(tasks.publish_crl, authority_id=str(certificate.authority_id))

    assert RevocationList.objects.latest_of(certificate.authority).number == before + 1


def test_list_waits_for_a_lost_key(tenant: Tenant) -> None:
    certificate = make_revoked_certificate(tenant)
    lose_key(certificate.authority)

    run(tasks.publish_crl, authority_id=str(certificate.authority_id))
    run(tasks.publish_due_crls)

    assert RevocationList.objects.latest_of(certificate.authority).number == 1
    assert publication.lists_are_due(authority_id=certificate.authority_id, now=now())


def test_expiry_runs_by_the_clock(tenant: Tenant) -> None:
    certificate = make_overdue_certificate(tenant)

    run(tasks.sweep_ends)

    certificate.refresh_from_db()
    assert certificate.status == "expired"


def test_one_worker_fills_at_a_time(settings: Settings) -> None:
    settings.KEY_POOL_SIZE = 1
    other = connections[environments.alias()].copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [TurnLock.KEY_POOL])

    run(tasks.fill_key_pool)
    assert not PooledKey.objects.exists()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", [TurnLock.KEY_POOL])
    other.close()
    run(tasks.fill_key_pool)

    assert PooledKey.objects.count() == 1


def test_filling_ends_with_its_turn(settings: Settings) -> None:
    settings.KEY_POOL_SIZE = 5

    assert key_pool.fill(now=now(), seconds=0) == 0
    assert not PooledKey.objects.exists()


def take_one(agent: Agent) -> None:
    key_pool.take_for(make_intent(agent))


def stock(count: int) -> None:
    for number in range(count):
        PooledKey.objects.create(key_uri=f"pkcs11:object=waiting-{number}", spki=b"", created_at=now())


def test_taking_a_key_rings_below_half_of_the_pool(
    settings: Settings, agent: Agent, django_capture_on_commit_callbacks: Any
) -> None:
    settings.KEY_POOL_SIZE = 4
    stock(3)

    rung = []
    for _ in range(4):
        with django_capture_on_commit_callbacks() as callbacks:
            take_one(agent)
        rung.append(len(callbacks))

    # Two are left, one, none; and none to take.
    assert rung == [0, 1, 1, 1]


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.name)
def test_without_an_hsm_tasks_end_quietly(task: Any, settings: Settings) -> None:
    settings.PKCS11_MODULE = ""
    reset()

    run(task)

    reset()
    assert not PooledKey.objects.exists()
