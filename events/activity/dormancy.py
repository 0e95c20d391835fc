"""Dormant agents: active without an event for `DORMANT_DAYS`, told once; the next event ends it.

Sweeps find them by the daily sums of `events.risk.rolling` and look at the last event of each candidate, so
that recording an event costs nothing more. An agent that never reported counts from its activation.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from agents import services as agents
from agents.models import Agent, AgentStatus
from agents.querysets import AgentQuerySet
from auditlog.vocabulary import Actor
from certificates import services as certificates
from compliance.core import environments
from compliance.core.identifiers import moment_of
from compliance.stores import sql
from compliance.stores.sweeps import each
from events.models import BehaviorEvent, RiskDay
from events.risk.rolling import BEHIND, summed_until

ACTOR: Final = Actor.system("events.find_dormant")
TOGETHER: Final = 10_000  # agents that one statement asks about
Row = tuple[UUID, UUID]
"""The ids of an agent and of its tenant."""

# By the index, however many agents there are
_SUMMED: Final = f"""
SELECT given.id FROM unnest(%(ids)s::uuid[], %(days)s::date[]) AS given (id, day) WHERE EXISTS (
    SELECT FROM {RiskDay._meta.db_table} AS known WHERE known.agent_id = given.id AND known.day >= given.day
)
"""  # noqa: S608  (only names of tables are put into the text)
_NEW: Final = f"""
SELECT DISTINCT agent_id FROM {BehaviorEvent._meta.db_table}
WHERE id >= %(mark)s AND agent_id = ANY(%(ids)s::uuid[])
"""  # noqa: S608


def find_dormant(*, now: datetime) -> int:
    """Announce agents that have fallen dormant, and suspend the long dormant; return how many. Repeatable."""
    if moment_of(summed_until()) < now - BEHIND:
        return 0  # by sums that are too old all would seem silent
    active = Agent.objects.filter(status=AgentStatus.ACTIVE)
    count = _each_silent(active.dormant(False), settings.DORMANT_DAYS, _fall_dormant, now)
    if (days := settings.DORMANT_SUSPEND_DAYS) is not None:
        count += _each_silent(active.dormant(True), days, _suspend, now)
    return count


def end_dormancies() -> int:
    """End the dormancy of agents that have reported since it began; return how many. Repeatable."""
    found = Agent.objects.dormant(True).values_list("id", "tenant_id", "dormant_at")
    dormant = [((agent_id, tenant_id), _day(at)) for agent_id, tenant_id, at in found if at is not None]
    return each([row for row, has_reported in _reported(dormant) if has_reported], _wake)


def _each_silent(found: AgentQuerySet, days: int, act: Callable[..., bool], now: datetime) -> int:
    """Call `act` with each of the agents without an event for so many days, locked; return how many acts."""
    since = now - timedelta(days=days)
    rows = found.filter(status_changed_at__lt=since).order_by("id").values_list("id", "tenant_id")
    next_day = _day(since) + timedelta(days=1)
    silent = [row for row, has_reported in _reported([(row, next_day) for row in rows]) if not has_reported]

    def look(row: Row) -> bool:
        agent_id, tenant_id = row
        with environments.atomic():
            agent = Agent.objects.for_tenant(tenant_id).with_tenant().locked().find(agent_id)
            own = BehaviorEvent.objects.for_tenant(tenant_id).of_agent(agent_id)
            last = own.order_by("-id").values_list("received_at", flat=True).first()
            is_silent = agent.status_changed_at < since and (last is None or last < since)
            return is_silent and agent.status == AgentStatus.ACTIVE and act(agent, last, days, now)

    return each(silent, look)


def _reported(agents_and_days: list[tuple[Row, date]]) -> Iterator[tuple[Row, bool]]:
    """Yield each agent with whether, by the daily sums, it has an event of its day or later."""
    mark = summed_until()
    for start in range(0, len(agents_and_days), TOGETHER):
        part = agents_and_days[start : start + TOGETHER]
        ids = [row[0] for row, _ in part]
        asked: dict[str, Any] = {"ids": ids, "days": [day for _, day in part], "mark": mark}
        known = {agent_id for statement in (_SUMMED, _NEW) for (agent_id,) in sql.query(statement, asked)}
        yield from ((row, row[0] in known) for row, _ in part)


def _fall_dormant(agent: Agent, last: datetime | None, days: int, now: datetime) -> bool:
    if agent.dormant_at is not None:
        return False
    agents.fall_dormant(agent=agent, last_event_at=last, days=days, actor=ACTOR, now=now)
    return True


def _suspend(agent: Agent, _: datetime | None, days: int, now: datetime) -> bool:
    """Suspend an agent that is dormant for too long; the service stops none that is only observed."""
    if agent.is_observed or agent.dormant_at is None:
        return False
    reason = f"Dormant: no event for {days} days"
    certificates.suspend_agent(
        tenant_id=agent.tenant_id, agent_id=agent.id, reason=reason, actor=ACTOR, now=now
    )
    return True


def _wake(row: Row) -> int:
    agent_id, tenant_id = row
    return Agent.objects.for_tenant(tenant_id).filter(id=agent_id).update(dormant_at=None)


def _day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()
