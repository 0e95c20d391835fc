"""What must hold when several do the same at once: one certificate, rising list numbers, no lost key."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates import key_pool, services
from certificates.errors import AlreadyCertified, AlreadyRevoked, ListBeingMade
from certificates.models import Certificate, CertificateAuthority, Issuance, PooledKey, RevocationList
from certificates.publication import is_due, publish
from certificates.tests.factories import make_authorities, make_certificate
from compliance import environments
from compliance.clock import now
from compliance.environments import Environment
from compliance.errors import ServiceError
from compliance.tenancy.tests.factories import ACTOR, make_tenant

THREADS = 4

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def agent() -> Agent:
    make_authorities()
    return make_agent(make_tenant())


def at_once(call: Callable[[], Any]) -> list[Any]:
    """The results, or the service errors, of the same call in several threads that start together."""
    together = Barrier(THREADS)

    def run() -> Any:
        try:
            with environments.use(Environment.LIVE):
                together.wait(10)
                return call()
        except ServiceError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result() for future in [pool.submit(run) for _ in range(THREADS)]]


def test_agent_gets_one_certificate(agent: Agent) -> None:
    outcomes = at_once(
        lambda: services.issue(tenant_id=agent.tenant_id, agent_id=agent.id, actor=ACTOR, now=now())
    )

    assert Counter(map(type, outcomes)) == {Certificate: 1, AlreadyCertified: THREADS - 1}
    states = Counter(Issuance.objects.filter(agent=agent).values_list("state", flat=True))
    assert states["completed"] == 1
    assert states["started"] == 0
    failed = Issuance.objects.filter(agent=agent, state="failed").values_list("key_uri", flat=True)
    assert PooledKey.objects.filter(key_uri__in=list(failed)).count() == len(failed)


def test_certificate_is_revoked_once(agent: Agent) -> None:
    certificate = make_certificate(agent)

    outcomes = at_once(
        lambda: services.revoke(
            tenant_id=agent.tenant_id, certificate_id=certificate.id, reason="x", actor=ACTOR, now=now()
        )
    )

    assert Counter(map(type, outcomes)) == {Certificate: 1, AlreadyRevoked: THREADS - 1}


def test_one_of_several_makes_the_lists_and_the_others_are_told(agent: Agent) -> None:
    authority = CertificateAuthority.objects.issuing()

    outcomes = at_once(lambda: publish(authority_id=authority.id, actor=ACTOR, now=now(), force=True))

    made = sorted(found.number for found in outcomes if isinstance(found, RevocationList))
    assert made == list(range(authority.crl_number + 1, authority.crl_number + 1 + len(made)))
    assert {type(found) for found in outcomes} <= {RevocationList, ListBeingMade}
    assert RevocationList.objects.latest_of(authority).number == made[-1]


def test_storm_of_requests_ends_in_one_list(agent: Agent) -> None:
    certificate = make_certificate(agent)
    services.revoke(
        tenant_id=agent.tenant_id, certificate_id=certificate.id, reason="x", actor=ACTOR, now=now()
    )

    outcomes = at_once(lambda: publish(authority_id=certificate.authority_id, actor=ACTOR, now=now()))

    assert sum(published is not None for published in outcomes) <= 1
    assert not is_due(certificate.authority, now())


def test_chain_is_made_once(agent: Agent) -> None:
    outcomes = at_once(lambda: services.bootstrap(now=now()).id)

    assert len(set(outcomes)) == 1


def test_pooled_key_is_given_to_one_taker(agent: Agent) -> None:
    for _ in range(THREADS):
        key_pool.put_back(key=key_pool.generate(), now=now())

    def take() -> str:
        with environments.atomic():
            key = key_pool.take()
        assert key is not None
        return key.uri

    taken = at_once(take)

    assert len(set(taken)) == THREADS
    assert not PooledKey.objects.filter(key_uri__in=taken).exists()
