"""Replays for tests: a candidate's findings in one call, and pasts in which agents were stopped."""

from datetime import UTC, datetime, timedelta
from typing import Any

from agents.models import Agent
from certificates import services as certificates
from certificates.tests.factories import make_certificate
from compliance.core.clock import now
from events.risk.evaluation.replay import Order, Replay
from events.risk.evaluation.simulations import Fate, ReplayFindings, findings, order_of
from events.tests.factories import OFFICER, make_high_event
from tenancy.models import Tenant

START = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def minutes(count: float) -> datetime:
    return START + timedelta(minutes=count)


LIVE: dict[str, Any] = {"threshold": 0.85, "strikes": 3, "window_minutes": 15}
"""A candidate that changes nothing."""


def order_for(tenant: Tenant, changes: dict[str, Any] = LIVE, **period: Any) -> Order:
    return order_of(
        tenant_id=tenant.id, changes=LIVE | changes, **{"since": None, "until": None, "now": now(), **period}
    )


def simulated(tenant: Tenant, changes: dict[str, Any] = LIVE, **period: Any) -> ReplayFindings:
    replay = Replay(order_for(tenant, changes, **period))
    while not replay.run(most=1_000):
        pass
    return findings(replay, now=now())


def fate_of(found: ReplayFindings, agent: Agent) -> Fate:
    (fate,) = [one for one in found.agents if one.agent_id == agent.id]
    return fate


def high_events(agent: Agent, *at: float) -> list[Any]:
    """High events received at these minutes, as the live service takes them: the third in time stops it."""
    return [make_high_event(agent, received_at=minutes(minute)) for minute in at]


def reinstated(agent: Agent, at: datetime) -> Agent:
    certificates.reinstate_agent(
        may_undo_stop=True,
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        reason="fixed",
        actor=OFFICER,
        now=at,
    )
    made = Agent.objects.get(id=agent.id)
    make_certificate(made)
    return made
