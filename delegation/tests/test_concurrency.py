"""What must hold when several do the same at once: one active key, no token that outruns a stop."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest
from django.db import connections

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates import services as certificates
from compliance import environments
from compliance.clock import now
from compliance.environments import Environment
from compliance.errors import ServiceError
from compliance.keys import backend_for
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.owner import owning
from delegation import keys
from delegation.errors import AgentMayNotDelegate, RotationUnderWay
from delegation.models import TokenKey
from delegation.tests.factories import ACTOR, make_token

THREADS = 4

pytestmark = pytest.mark.usefixtures("committed")


def in_thread(call: Callable[[], Any]) -> Any:
    """The result of `call`, or its service error, on connections of its own."""
    try:
        with environments.use(Environment.LIVE):
            return call()
    except ServiceError as error:
        return error
    finally:
        connections.close_all()


def at_once(call: Callable[[], Any]) -> list[Any]:
    """Outcomes of the same call in several threads that start together."""
    together = Barrier(THREADS)

    def run() -> Any:
        together.wait(10)
        return in_thread(call)

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result() for future in [pool.submit(run) for _ in range(THREADS)]]


def keys_in_the_token() -> set[str]:
    return {key.uri for key in backend_for(Environment.LIVE).list_keys(keys.LABEL)}


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
        _wait_until_somebody_waits_for_a_lock()
    return issuing


def _wait_until_somebody_waits_for_a_lock() -> None:
    deadline = now().timestamp() + 20
    while now().timestamp() < deadline:
        with connections["default"].cursor() as cursor:
            # Inside a transaction the view would otherwise stay as it was first seen.
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database()"
            )
            if cursor.fetchone()[0]:
                return
        Event().wait(0.05)
    raise AssertionError("nobody waits for the agent's lock")
