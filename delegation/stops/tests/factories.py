"""Stops, and crowds of agents whose certificates are rows without keys."""

import copy
from typing import Any

from agents.models import Agent
from certificates.models import Certificate
from certificates.pki.serials import format_serial, new_serial
from certificates.querysets import HOLD
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from delegation.stops import services
from delegation.stops.models import KindStop, StoppedAgent
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR


def make_crowd(tenant: Tenant, count: int, **fields: Any) -> list[Agent]:
    """So many active agents, the first one certified, the others with copies of its certificate's row."""
    return copy_agent(make_certified_agent(tenant, **fields), count)


def copy_agent(first: Agent, count: int) -> list[Agent]:
    """The certified agent and copies of it, to make so many in all."""
    certificate = Certificate.objects.get(agent_id=first.id)
    agents, certificates = [], []
    for _ in range(count - 1):
        agent, row = copy.copy(first), copy.copy(certificate)
        agent.id, row.id = new_id(), new_id()
        row.agent = agent
        row.serial_number = format_serial(new_serial(environments.current()))
        row.kms_key_arn = f"crowd:{row.serial_number}"
        agents.append(agent)
        certificates.append(row)
    Agent.objects.bulk_create(agents, batch_size=1000)
    Certificate.objects.bulk_create(certificates, batch_size=1000)
    return [first, *agents]


def begin_stop(tenant: Tenant, **fields: Any) -> KindStop:
    """A stop that nothing has worked on yet."""
    given = {"match": {"all": True}, "revoke": False, "reason": "drill", "reason_code": HOLD, **fields}
    return services.begin(tenant_id=tenant.id, **given, actor=ACTOR, now=now())


def work_off(stop: KindStop) -> KindStop:
    while services.STOPS.advance(job_id=stop.id, now=now()):
        pass
    stop.refresh_from_db()
    return stop


def make_stop(tenant: Tenant, **fields: Any) -> KindStop:
    """A stop that is done."""
    return work_off(begin_stop(tenant, **fields))


def release_stop(stop: KindStop) -> KindStop:
    released = services.release(
        tenant_id=stop.tenant_id, stop_id=stop.id, reason="cause fixed", actor=ACTOR, now=now()
    )
    return work_off(released)


def outcomes_of(stop: KindStop) -> dict[Any, str]:
    return dict(StoppedAgent.objects.filter(stop=stop).values_list("agent_id", "outcome"))
