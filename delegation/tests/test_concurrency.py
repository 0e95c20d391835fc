"""What must hold when several do the same at once: one active key, no token that outruns a stop."""

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates import services as certificates
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.keys.registry import backend_for
from compliance.stores import sql
from compliance.tests.owner import owning
from compliance.tests.threads import THREADS, at_once, in_thread, somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from delegation import services
from delegation.errors import AgentMayNotDelegate, RotationUnderWay, TokenRejected
from delegation.jose import jws
from delegation.models import TokenKey
from delegation.tests.factories import ACTOR, make_token
from delegation.token_keys import keyring, keys
from tenancy.tests.factories import make_tenant

pytestmark = pytest.mark.usefixtures("committed")


def keys_in_the_token() -> set[str]:
    return {key.uri for key in backend_for(Environment.LIVE).list_keys("token-signing")}


def test_first_keys_are_made_once_and_leave_no_orphans() -> None:
    with owning():
        TokenKey.objects.all().delete()
    before = keys_in_the_token()

    made = at_once(lambda: keys.bootstrap(actor=ACTOR, now=now()))

    active = TokenKey.objects.get()
    assert {key.id for key in made} == {active.id}
    assert keys_in_the_token() - before == {active.uri}


def test_one_of_many_rotations_publishes() -> None:
    keys.bootstrap(actor=ACTOR, now=now())
    with owning():
        TokenKey.objects.filter(status="published").delete()
    before = keys_in_the_token()

    outcomes = at_once(lambda: keys.rotate(actor=ACTOR, now=now()))

    refused = [outcome for outcome in outcomes if isinstance(outcome, RotationUnderWay)]
    assert len(refused) == THREADS - 1
    assert len(keys_in_the_token() - before) == 1
    with owning():
        TokenKey.objects.filter(status="published").delete()


def test_no_token_is_recorded_once_its_agent_was_stopped() -> None:
    keys.bootstrap(actor=ACTOR, now=now())
    agent = make_agent(make_tenant())

    with ThreadPoolExecutor(1) as pool:
        issuing = _issue_while_being_suspended(agent, pool)

    assert isinstance(issuing.result(), AgentMayNotDelegate)
    assert not AuditEntry.objects.about(agent.id).filter(event_type="delegation.issued").exists()


def test_no_token_is_issued_with_a_key_that_was_withdrawn_while_it_waited() -> None:
    compromised = keys.bootstrap(actor=ACTOR, now=now())
    agent = make_agent(make_tenant())

    with ThreadPoolExecutor(2) as pool:
        with environments.atomic():
            Agent.objects.for_tenant(agent.tenant_id).locked().find(agent.id)
            issuing = pool.submit(in_thread, lambda: make_token(agent))
            assert eventually(somebody_waits_for_a_lock, seconds=20)
            replacing = pool.submit(in_thread, lambda: keys.replace_compromised(actor=ACTOR, now=now()))
            successor = replacing.result(20)
        issued = issuing.result(20)

    assert successor != compromised
    assert jws.parse(issued.token).header["kid"] == successor.kid
    assert services.verify(token=issued.token, now=now()).valid
    with pytest.raises(TokenRejected):
        keyring.find(compromised.kid)


def test_event_loop_waits_for_no_thread_that_reads_the_first_keys() -> None:
    keys.bootstrap(actor=ACTOR, now=now())
    kid = TokenKey.objects.get(status="active").kid
    keyring.forget()

    async def look() -> None:
        with pytest.raises(SynchronousOnlyOperation):
            keyring.find(kid)

    with ThreadPoolExecutor(2) as pool:
        with environments.atomic():
            sql.execute(f"LOCK TABLE {TokenKey._meta.db_table} IN ACCESS EXCLUSIVE MODE")
            reading = pool.submit(in_thread, lambda: keyring.find(kid))
            assert eventually(somebody_waits_for_a_lock, seconds=20)
            pool.submit(asyncio.run, look()).result(20)
        assert reading.result()[0] is Environment.LIVE


def _issue_while_being_suspended(agent: Agent, pool: ThreadPoolExecutor) -> "Future[Any]":
    """Suspend under the row lock; another thread finds the agent sound, signs, and waits for the lock."""
    begun = Event()

    def issue() -> Any:
        begun.set()
        return make_token(agent)

    with environments.atomic():
        certificates.suspend_agent(
            tenant_id=agent.tenant_id, agent_id=agent.id, reason="test", actor=ACTOR, now=now()
        )
        issuing = pool.submit(in_thread, issue)
        begun.wait(10)
        assert eventually(somebody_waits_for_a_lock, seconds=20)
    return issuing
