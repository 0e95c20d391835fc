"""What must hold when several do the same at once: one certificate, rising list numbers, no lost key."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents.blueprints import inheritance, services as blueprints
from agents.errors import AgentAlreadySuspended, AgentNotSuspended
from agents.models import Agent, AgentStatus
from agents.tests.factories import make_agent, make_blueprint
from certificates import authorities
from certificates.errors import AlreadyCertified, AlreadyRevoked, ListBeingMade
from certificates.issuing import issuance, key_pool
from certificates.lists import list_audit
from certificates.lists.publication import lists_are_due, publish
from certificates.models import (
    Certificate,
    CertificateAuthority,
    CertificateStatus,
    EndedHold,
    Issuance,
    PooledKey,
    RevocationList,
)
from certificates.renewing import services as renewing
from certificates.tests.factories import (
    make_authorities,
    make_certificate,
    make_intent,
    reinstate_agent,
    retire_agent,
    revoke_certificate,
    suspend_agent,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.tests.threads import THREADS, all_at_once, at_once, in_thread, somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from tenancy.tests.factories import ACTOR, make_tenant

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def agent() -> Agent:
    make_authorities()
    return make_agent(make_tenant())


def test_agent_gets_one_certificate(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_pool, "WAIT_SECONDS", 60.0)  # on a busy machine two keys take longer than 10 s
    outcomes = at_once(lambda: certify(agent))

    assert Counter(map(type, outcomes)) == {Certificate: 1, AlreadyCertified: THREADS - 1}
    states = Counter(Issuance.objects.filter(agent=agent).values_list("state", flat=True))
    assert states["completed"] == 1
    assert states["started"] == 0
    failed = Issuance.objects.filter(agent=agent, state="failed").values_list("key_uri", flat=True)
    assert PooledKey.objects.filter(key_uri__in=list(failed)).count() == len(failed)


def test_certificate_is_revoked_once(agent: Agent) -> None:
    certificate = make_certificate(agent)

    outcomes = at_once(lambda: revoke_certificate(certificate))

    assert Counter(map(type, outcomes)) == {Certificate: 1, AlreadyRevoked: THREADS - 1}


def certify(agent: Agent) -> Any:
    return issuance.issue(tenant_id=agent.tenant_id, agent_id=agent.id, actor=ACTOR, now=now())


def renew(agent: Agent) -> Any:
    return issuance.renew_of_agent(tenant_id=agent.tenant_id, agent_id=agent.id, actor=ACTOR, now=now())


def revoke(agent: Agent) -> Any:
    newest = Certificate.objects.latest_of(agent)
    assert newest is not None
    return revoke_certificate(newest)


def assert_coherent(agent: Agent) -> None:
    """Only an active agent may have an active certificate, only a suspended one a certificate on hold."""
    agent.refresh_from_db()
    rows = list(Certificate.objects.of_agent(agent.id))
    active = [row for row in rows if row.status == CertificateStatus.ACTIVE]
    held = [row for row in rows if row.is_on_hold(now())]
    assert len(active) + len(held) <= 1
    assert not active or agent.status == AgentStatus.ACTIVE
    assert not held or agent.status == AgentStatus.SUSPENDED
    assert agent.status != AgentStatus.PENDING or not active


def test_agent_is_suspended_once(agent: Agent) -> None:
    make_certificate(agent)

    suspended = at_once(lambda: suspend_agent(agent))
    reinstated = at_once(lambda: reinstate_agent(agent))

    assert Counter(map(type, suspended)) == {Agent: 1, AgentAlreadySuspended: THREADS - 1}
    assert Counter(map(type, reinstated)) == {Agent: 1, AgentNotSuspended: THREADS - 1}
    assert EndedHold.objects.filter(certificate__agent=agent).count() == 1
    assert_coherent(agent)


@pytest.mark.parametrize("before", ["registered", "certified", "suspended"])
@pytest.mark.parametrize(
    "others",
    [
        *((certify,), (renew,), (revoke,), (retire_agent,), (reinstate_agent,)),
        *((certify, reinstate_agent), (revoke, reinstate_agent)),
    ],
    ids=lambda others: "+".join(other.__name__ for other in others),
)
def test_suspending_beside_what_else_ends_in_a_coherent_state(
    agent: Agent, before: str, others: tuple[Callable[[Agent], Any], ...]
) -> None:
    if before != "registered":
        make_certificate(agent)
    elif revoke in others:
        pytest.skip("nothing to revoke")
    if before == "suspended":
        suspend_agent(agent)

    all_at_once([partial(call, agent) for call in (suspend_agent, *others)])

    assert_coherent(agent)


def test_lists_made_during_holds_and_releases_are_right_in_the_end(agent: Agent) -> None:
    subjects = [agent, *(make_agent(agent.tenant) for _ in range(2))]
    for subject in subjects:
        make_certificate(subject)
    authority = CertificateAuthority.objects.issuing()

    def alternate(subject: Agent) -> None:
        for _ in range(8):
            suspend_agent(subject)
            reinstate_agent(subject)
        suspend_agent(subject)

    def publish_often() -> None:
        for _ in range(12):
            publish(authority_id=authority.id, actor=ACTOR, now=now())

    all_at_once([*(partial(alternate, subject) for subject in subjects), publish_often])
    for subject in subjects[1:]:
        reinstate_agent(subject)
    publish(authority_id=authority.id, actor=ACTOR, now=now())

    authority.refresh_from_db()
    assert not lists_are_due(authority_id=authority.id, now=now())
    assert list_audit.findings(authority, now()) == []


def test_round_that_waits_for_a_release_does_not_mark_the_released(agent: Agent) -> None:
    certificate = make_certificate(agent)
    suspend_agent(agent)

    with ThreadPoolExecutor(1) as pool:
        with environments.atomic():
            reinstate_agent(agent)
            making = pool.submit(in_thread, lambda: publish_now(certificate))
            assert eventually(somebody_waits_for_a_lock)
        making.result()

    certificate.refresh_from_db()
    assert (certificate.status, certificate.first_crl_number) == ("active", None)
    suspend_agent(agent)
    assert lists_are_due(authority_id=CertificateAuthority.objects.issuing().id, now=now())


def test_what_is_inherited_stays_so_when_the_blueprint_changes_during_a_renewal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blueprint = make_blueprint(make_tenant(), permitted_actions=["read"])
    agent = make_agent(blueprint.tenant, blueprint_id=blueprint.id)
    asked: dict[str, Any] = {"tenant_id": blueprint.tenant_id, "blueprint_id": blueprint.id, "actor": ACTOR}
    permit(["read", "pay"], **asked)
    renewal = renewing.begin(**asked, agent_ids=[agent.id], now=now())

    with ThreadPoolExecutor(1) as pool:

        def changed_meanwhile(*given: Any) -> dict[str, Any]:
            found = inheritance.brought_up(*given)
            change = pool.submit(in_thread, lambda: permit(["read", "pay", "refund"], **asked))
            assert eventually(lambda: change.done() or somebody_waits_for_a_lock())
            return found

        monkeypatch.setattr(renewing, "brought_up", changed_meanwhile)
        renewing.RENEWALS.work_off(job_id=renewal.id, now=now())

    agent.refresh_from_db()
    assert (agent.permitted_actions, agent.own_fields) == (["read", "pay"], [])


def permit(actions: list[str], **asked: Any) -> Any:
    return blueprints.update(**asked, changes={"permitted_actions": actions}, now=now())


def publish_now(certificate: Certificate) -> Any:
    return publish(authority_id=certificate.authority_id, actor=ACTOR, now=now())


def test_one_of_several_makes_the_lists_and_the_others_are_told(agent: Agent) -> None:
    authority = CertificateAuthority.objects.issuing()

    outcomes = at_once(lambda: publish(authority_id=authority.id, actor=ACTOR, now=now(), force=True))

    made = sorted(found.number for found in outcomes if isinstance(found, RevocationList))
    assert made == list(range(authority.crl_number + 1, authority.crl_number + 1 + len(made)))
    assert {type(found) for found in outcomes} <= {RevocationList, ListBeingMade}
    assert RevocationList.objects.latest_of(authority).number == made[-1]


def test_storm_of_requests_ends_in_one_list(agent: Agent) -> None:
    certificate = make_certificate(agent)
    revoke_certificate(certificate)

    outcomes = at_once(lambda: publish(authority_id=certificate.authority_id, actor=ACTOR, now=now()))

    assert sum(published is not None for published in outcomes) <= 1
    assert not lists_are_due(authority_id=certificate.authority.id, now=now())


def test_chain_is_made_once(agent: Agent) -> None:
    outcomes = at_once(lambda: authorities.bootstrap(now=now()).id)

    assert len(set(outcomes)) == 1


def test_pooled_key_is_given_to_one_taker(agent: Agent) -> None:
    for _ in range(THREADS):
        key_pool.put_back(key=key_pool.generate(now=now()), now=now())

    taken = [key.uri for key in at_once(lambda: key_pool.take_for(make_intent(agent)))]

    assert len(set(taken)) == THREADS
    assert not PooledKey.objects.filter(key_uri__in=taken).exists()


@pytest.fixture
def four_waiting(committed: None, agent: Agent) -> Iterator[None]:
    """Rows of keys that no token has: nobody else may get one."""
    PooledKey.objects.all().delete()
    for number in range(4):
        PooledKey.objects.create(key_uri=f"pkcs11:object=waiting-{number}", spki=b"", created_at=now())
    yield
    PooledKey.objects.all().delete()


@pytest.mark.usefixtures("four_waiting")
def test_others_half_of_the_pool_is_kept_from_those_who_take_at_once(
    agent: Agent, settings: Settings
) -> None:
    settings.KEY_POOL_SIZE = 4
    settings.RATE_LIMITS = {**settings.RATE_LIMITS, "pool_keys": 1}
    assert key_pool.take_for(make_intent(agent))

    with environments.atomic(), ThreadPoolExecutor(1) as pool:
        assert key_pool.take_for(make_intent(agent))
        assert pool.submit(in_thread, lambda: key_pool.take_for(make_intent(agent))).result() is None

    assert PooledKey.objects.count() == 2
