"""What a decision on an agent rests on: what it may do, does and was refused, its risk and incidents."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Sum

from agents.models import Agent
from compliance.core.json_values import written
from delegation.reviews.models import AccessReviewItem
from events.figures.usage import WINDOW, usages
from events.models import RiskDay
from incidents.models import TouchedAgent


def facts_of(agents_shown: Sequence[Agent], now: datetime) -> dict[UUID, dict[str, Any]]:
    """Return what a decision needs of each agent, as JSON has it, in a few statements."""
    ids = [agent.id for agent in agents_shown]
    first = (now - timedelta(days=30)).astimezone(UTC).date()
    risks = RiskDay.objects.filter(agent_id__in=ids, day__gte=first).order_by().values_list("agent_id")
    high = dict(risks.annotate(sum=Sum("high")))
    incidents = Counter(TouchedAgent.objects.filter(agent_id__in=ids).values_list("agent_id", flat=True))
    return {
        agent.id: {
            "name": agent.name,
            "status": agent.status,
            "owner": agent.owner_email,
            "permitted_actions": used.permitted,
            "used": [
                {"name": one.name, "count": one.count, "last_at": written(one.last_at)} for one in used.used
            ],
            "unused": used.unused,
            "refused": sorted({one.name for one in used.refused}),
            "is_complete": used.is_complete,
            "last_active_at": written(used.last_used_at),
            "risk_score": agent.risk_score,
            "high_events": high.get(agent.id, 0),
            "incidents": incidents[agent.id],
        }
        for agent, used in zip(agents_shown, usages(agents_shown, now - WINDOW, now).values(), strict=True)
    }


def items_shown(items: Sequence[AccessReviewItem], now: datetime) -> list[dict[str, Any]]:
    """Return the items with the facts that they were decided on, or those of now, in a few statements."""
    unseen = [item.agent_id for item in items if item.seen is None]
    tenants = {item.tenant_id for item in items}
    facts = facts_of(list(Agent.objects.filter(tenant_id__in=tenants, id__in=unseen)), now)
    names = ["agent_id", "is_decided", "decision", "removed", "note", "decided_by", "decided_at"]
    names += ["applied_at", "problem"]
    return [
        {**(item.seen or facts[item.agent_id]), **{name: getattr(item, name) for name in names}}
        for item in items
    ]
