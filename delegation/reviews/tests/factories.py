"""Reviews of access, and agents with a scope of which they use a part."""

from datetime import datetime, timedelta
from typing import Any

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.identifiers import first_id_at
from delegation.reviews import services
from delegation.reviews.models import AccessReview, AccessReviewDecision, AccessReviewItem
from events.figures.models import ActionDay
from events.models import ScorerProgress
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR

SCOPE = ["place_order", "refund", "delete_account"]


def make_scoped_agent(tenant: Tenant, **fields: Any) -> Agent:
    """A certified agent that may do three things and does one of them."""
    agent = make_certified_agent(tenant, metadata={"permitted_actions": SCOPE}, **fields)
    use(agent, "place_order")
    return agent


def use(agent: Agent, name: str, outcome: str = "used", count: int = 5) -> None:
    """Put figures of today, and have them up to now."""
    moment = now()
    ActionDay.objects.create(
        agent_id=agent.id, day=moment.date(), outcome=outcome, names=f'["api_call",["{name}"],[]]',
        count=count, last_at=moment,
    )  # fmt: skip
    ScorerProgress.objects.update_or_create(name="usage", defaults={"upto": first_id_at(moment)})


def open_review(tenant: Tenant, at: datetime | None = None, **fields: Any) -> AccessReview:
    moment = at or now()
    due_at = moment + timedelta(days=14)
    given = {"match": {"all": True}, "reviewer": "kim@example.com", "due_at": due_at, "every": None, **fields}
    return services.open_review(tenant_id=tenant.id, **given, actor=ACTOR, now=moment)


def decide(review: AccessReview, decision: str, *agents: Agent, **fields: Any) -> Any:
    return services.decide(
        tenant_id=review.tenant_id, review_id=review.id, agent_ids=[agent.id for agent in agents],
        decision=AccessReviewDecision(decision), **fields, actor=ACTOR, now=now(),
    )  # fmt: skip


def make_access_review(tenant: Tenant, agent: Agent, label: str) -> AccessReview:
    """An open review of one agent, as rows alone."""
    moment = now()
    review = AccessReview.objects.create(
        tenant=tenant, match={"owner": label}, reviewer=label, agent_count=1, due_at=moment,
        started_by=ACTOR.id, started_by_kind=ACTOR.kind, started_at=moment,
    )  # fmt: skip
    AccessReviewItem.objects.create(tenant=tenant, review=review, agent_id=agent.id, opened_at=moment)
    return review
