"""Stops beside each other and beside certify, renew and strikes; rows that can't be written; lost workers."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.db import connection

from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.issuing import issuance
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent, stock_pool
from compliance.core.clock import now
from compliance.stores.portions import PATIENCE
from compliance.tests.owner import execute_as_owner
from compliance.tests.threads import all_at_once
from delegation.stops import services
from delegation.stops.models import KindStop, StoppedAgent
from delegation.stops.tests.factories import (
    begin_stop,
    make_crowd,
    make_stop,
    outcomes_of,
    release_stop,
    work_off,
)
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_tenant


@pytest.fixture
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        state: tuple(replace(phase, portion=3) for phase in phases)
        for state, phases in services.PHASES.items()
    }
    monkeypatch.setattr(services, "PHASES", small)


@pytest.mark.usefixtures("committed", "small_portions")
def test_two_stops_at_once_stop_each_agent_once() -> None:
    tenant = make_tenant()
    make_crowd(tenant, 20)
    first, second = begin_stop(tenant), begin_stop(tenant)

    all_at_once([partial(work_off, one) for one in (first, second, first, second)])

    for stop in (first, second):
        stop.refresh_from_db()
        assert (stop.state, stop.stopped + stop.skipped, stop.failed) == ("done", 20, 0)
    assert first.stopped + second.stopped == 20
    once, twice = outcomes_of(first), outcomes_of(second)
    assert all({once[one], twice[one]} == {"stopped", "skipped"} for one in once)


@pytest.mark.usefixtures("committed")
def test_an_agent_that_is_locked_holds_up_no_other() -> None:
    tenant = make_tenant()
    busy, *_ = make_crowd(tenant, 6)
    stop, rival = begin_stop(tenant), connection.copy()
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = 300")
    try:
        with rival.cursor() as cursor:
            cursor.execute("BEGIN; SELECT FROM agents_agent WHERE id = %s FOR UPDATE", [busy.id])
        work_off(stop)
        assert (stop.state, stop.stopped) == ("running", 5)
    finally:
        rival.close()
        connection.close()

    assert (work_off(stop).state, stop.stopped, stop.failed) == ("done", 6, 0)


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("verb", ["certify", "renew"])
def test_an_issuance_in_flight_leaves_the_agent_stopped(verb: str) -> None:
    tenant = make_tenant()
    agent = make_agent(tenant) if verb == "certify" else make_certified_agent(tenant)
    service: Callable[..., Any] = issuance.issue if verb == "certify" else issuance.renew_of_agent
    Certificate.objects.filter(agent=agent).update(issued_at=now().replace(year=now().year - 1))
    make_certified_agent(make_tenant())
    stock_pool()
    issue = partial(service, tenant_id=tenant.id, agent_id=agent.id, actor=ACTOR, now=now())

    all_at_once([issue, partial(make_stop, tenant)])

    agent.refresh_from_db()
    assert agent.status == "suspended"
    assert not Certificate.objects.filter(agent=agent).active(now()).exists()
    line, latest = StoppedAgent.objects.get(agent_id=agent.id), Certificate.objects.latest_of(agent)
    assert line.outcome == "stopped"
    assert line.serial_number == (latest.serial_number if latest else None)


@pytest.mark.usefixtures("small_portions")
def test_a_stop_goes_on_after_any_portion(tenant: Tenant) -> None:
    make_crowd(tenant, 10)
    stop = begin_stop(tenant)
    assert services.STOPS.advance(job_id=stop.id, now=now())
    stop.refresh_from_db()
    assert (stop.state, stop.stopped) == ("running", 3)

    assert services.STOPS.sweep(now=now()) == 0
    assert services.STOPS.sweep(now=now() + PATIENCE) == 1
    work_off(stop)

    stop.refresh_from_db()
    assert (stop.state, stop.stopped) == ("done", 10)
    assert services.STOPS.sweep(now=now() + PATIENCE) == 0
    work_off(stop)
    assert KindStop.objects.get(id=stop.id).stopped == 10


def test_who_joins_after_the_beginning_is_not_in_the_stop(tenant: Tenant) -> None:
    make_agent(tenant)
    stop = begin_stop(tenant)
    late = make_agent(tenant)

    work_off(stop)

    assert late.id not in outcomes_of(stop)
    late.refresh_from_db()
    assert late.status == "pending"


@pytest.mark.usefixtures("committed")
def test_one_that_cannot_be_stopped_holds_up_no_other() -> None:
    tenant = make_tenant()
    bad = make_crowd(tenant, 6)[3]
    rule = f"CHECK (id <> '{bad.id}' OR status = 'active')"
    execute_as_owner(f"ALTER TABLE agents_agent ADD CONSTRAINT drill {rule}")
    try:
        stop = make_stop(tenant)
    finally:
        execute_as_owner("ALTER TABLE agents_agent DROP CONSTRAINT drill")

    assert (stop.state, stop.stopped, stop.failed) == ("done", 5, 1)
    assert outcomes_of(stop)[bad.id] == "failed"
    assert make_stop(tenant).stopped == 1


@pytest.mark.usefixtures("committed", "small_portions")
def test_those_that_cannot_be_told_hold_up_no_other_and_the_audit_log_says_so() -> None:
    tenant = make_tenant()
    crowd = make_crowd(tenant, 8)
    stop = begin_stop(tenant)
    rows = StoppedAgent.objects.filter(stop=stop).order_by("id")
    bad = {str(one) for one in rows.values_list("agent_id", flat=True)[:4]}
    names = ", ".join(f"'{one}'" for one in bad)
    rule = f"CHECK (coalesce(affected_id, '') NOT IN ({names})) NOT VALID"
    execute_as_owner(f"ALTER TABLE auditlog_auditentry ADD CONSTRAINT drill {rule}")
    try:
        work_off(stop)
    finally:
        execute_as_owner("ALTER TABLE auditlog_auditentry DROP CONSTRAINT drill")

    assert (stop.state, stop.stopped) == ("done", 8)
    entries = AuditEntry.objects.for_tenant(tenant.id)
    assert {one.affected_id for one in entries.of_type("agent.suspended")} == {
        str(one.id) for one in crowd if str(one.id) not in bad
    }
    assert {(one.metadata or {})["agent_id"] for one in entries.of_type("stop.untold")} == bad


def test_work_takes_few_statements(tenant: Tenant, django_assert_max_num_queries: Any) -> None:
    make_crowd(tenant, 100)
    stop = begin_stop(tenant)

    with django_assert_max_num_queries(80):
        work_off(stop)

    assert stop.stopped == 100
    with django_assert_max_num_queries(80):
        assert release_stop(stop).released == 100
