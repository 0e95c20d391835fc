"""Dormant agents: active without an event for `DORMANT_DAYS`, told once; the next event ends it.

Sweeps find them, so that recording an event costs nothing more. An agent that never reported counts from its
activation.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Subquery

from agents import services as agents
from agents.models import Agent, AgentStatus
from auditlog.vocabulary import Actor
from certificates import services as certificates
from compliance.core import environments
from compliance.stores.sweeps import each
from events.models import BehaviorEvent

ACTOR: Final = Actor.system("events.find_dormant")
_OWN: Final = {"tenant_id": OuterRef("tenant_id"), "agent_id": OuterRef("pk")}


def find_dormant(*, now: datetime) -> int:
    """Announce agents that have fallen dormant, and suspend the long dormant; return how many. Repeatable."""
    count = _each_silent(False, settings.DORMANT_DAYS, now)
    if (days := settings.DORMANT_SUSPEND_DAYS) is not None:
        count += _each_silent(True, days, now)
    return count


def end_dormancies() -> int:
    """End the dormancy of agents that have reported since it began; return how many. Repeatable."""
    last = BehaviorEvent.objects.filter(**_OWN).order_by("-id").values("received_at")[:1]
    dormant = Agent.objects.dormant(True)
    woken = dormant.alias(last=Subquery(last)).filter(last__gt=F("dormant_at")).values_list("id", flat=True)
    return each(woken, lambda agent_id: dormant.filter(id=agent_id).update(dormant_at=None))


def _each_silent(is_dormant: bool, days: int, now: datetime) -> int:
    """Announce each active agent without an event for so many days, or suspend it if it is dormant already.

    Returns how many. The service suspends none that is only observed.
    """
    since = now - timedelta(days=days)
    silent = Agent.objects.filter(status=AgentStatus.ACTIVE, status_changed_at__lt=since).dormant(is_dormant)
    silent = silent.exclude(Exists(BehaviorEvent.objects.since(since).filter(**_OWN)))

    def act(row: tuple[UUID, UUID]) -> bool:
        agent_id, tenant_id = row
        with environments.atomic():
            agent = silent.for_tenant(tenant_id).with_tenant().locked().filter(id=agent_id).first()
            if agent is None or (is_dormant and agent.is_observed):
                return False
            if is_dormant:
                reason = f"Dormant: no event for {days} days"
                certificates.suspend_agent(
                    tenant_id=tenant_id, agent_id=agent_id, reason=reason, actor=ACTOR, now=now
                )
            else:
                own = BehaviorEvent.objects.for_tenant(tenant_id).of_agent(agent_id)
                last = own.order_by("-id").values_list("received_at", flat=True).first()
                agents.fall_dormant(agent=agent, last_event_at=last, days=days, actor=ACTOR, now=now)
        return True

    return each(silent.order_by("id").values_list("id", "tenant_id"), act)
