"""An agent's trail joins what it did and what was done about it, in order, page by page."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from agents import services as agents
from agents.models import Agent
from agents.tests.factories import make_agent
from certificates import services as certificates
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.tests.console import console_of, make_operator
from delegation.tests.factories import make_token, make_token_key
from events.inbox import reviewing
from events.models import ActionType, BehaviorEvent, EventReview, ReviewVerdict, RiskBand
from events.trail.steps import Place, trail_of
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_tenant


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


def make_event(agent: Agent, *, score: float = 0.1) -> BehaviorEvent:
    band = RiskBand.HIGH if score >= 0.85 else RiskBand.LOW
    return BehaviorEvent.objects.create(
        tenant=agent.tenant,
        agent=agent,
        action_type=ActionType.DATA_ACCESS,
        risk_score=score,
        risk_band=band,
        occurred_at=now() - timedelta(days=3),
        received_at=now(),
        reasons=[{"name": "scope", "observed": "x", "expected": "y", "weight": 1.0}],
        model_version="tests",
    )


def test_trail_joins_every_kind_of_step_newest_first(acme: Tenant) -> None:
    agent = make_certified_agent(acme)
    event = make_event(agent, score=0.9)
    given: dict[str, Any] = {"tenant_id": acme.id, "actor": ACTOR}
    reviewing.review(event_id=event.id, verdict=ReviewVerdict.CONFIRMED, note="bad", now=now(), **given)
    make_token_key()
    make_token(agent)
    certificate = agent.certificates.get()
    certificates.revoke(certificate_id=certificate.id, reason="stolen", now=now(), **given)

    steps = trail_of(agent).steps

    rows = [step.row for step in steps]
    seen = [getattr(row, "event_type", type(row).__name__) for row in rows]
    assert seen[:4] == ["certificate.revoked", "delegation.issued", "EventReview", "BehaviorEvent"]
    assert {"certificate.issued", "agent.created"} <= set(seen[4:])
    assert [step.place for step in steps] == sorted((step.place for step in steps), reverse=True)


def test_pages_lose_and_repeat_nothing(acme: Tenant) -> None:
    agent = make_certified_agent(acme)
    moment = now()
    for number in range(6):
        make_event(agent)
        agents.update(
            tenant_id=acme.id,
            agent_id=agent.id,
            changes={"description": f"{number}"},
            actor=ACTOR,
            # Several entries of one time: their ids order them.
            now=moment,
        )

    whole = [step.place for step in trail_of(agent, size=100).steps]
    paged: list[Place] = []
    page = trail_of(agent, size=2)
    while True:
        paged += [step.place for step in page.steps]
        if page.older is None:
            break
        page = trail_of(agent, before=page.older, size=2)

    assert len(whole) >= 14
    assert paged == whole


@pytest.mark.parametrize(
    "text",
    ["", "_", "x_y", "2026-01-01T00:00:00", "2026-01-01T00:00:00_", "9999-12-31T23:59:59+00:00_", "\x00"],
)
def test_nonsense_is_no_place(acme: Tenant, text: str) -> None:
    agent = make_agent(acme)
    address = reverse("admin:agents_agent_trail", args=[agent.pk])

    page = console_of(make_operator()).get(address, {"before": text})

    assert Place.parse(text) is None
    assert page.status_code == 200


def test_trail_holds_nothing_of_other_agents(acme: Tenant) -> None:
    agent, other = make_certified_agent(acme), make_certified_agent(acme)
    make_event(other)

    rows = [step.row for step in trail_of(agent).steps]

    assert not [row for row in rows if isinstance(row, BehaviorEvent | EventReview)]
    assert not [row for row in rows if str(other.id) in str(getattr(row, "metadata", ""))]
