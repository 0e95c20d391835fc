"""Access reviews in the console: opening, deciding on one and on many, 500 agents in few statements."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Agent
from agents.tests.factories import make_agent
from compliance.console.tests.test_console_queries import MOST_QUERIES, queries_of
from compliance.tests.console import actor_id_of, console_of, make_member
from delegation.reviews.models import AccessReview, AccessReviewItem
from delegation.reviews.tests.factories import make_scoped_agent, open_review, use
from delegation.stops.tests.factories import copy_agent
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

ADD = "admin:reviews_accessreview_add"


@pytest.fixture
def officer(tenant: Tenant) -> Client:
    return console_of(make_member(tenant, Role.OFFICER))


def page_of(review: AccessReview) -> str:
    return reverse("admin:reviews_accessreview_agents", args=[review.id])


def decisions(review: AccessReview) -> dict[Any, str]:
    return dict(AccessReviewItem.objects.filter(review=review).values_list("agent_id", "decision"))


def test_an_officer_opens_a_review(officer: Client, tenant: Tenant) -> None:
    make_agent(tenant, owner_name="Kim", owner_email="kim@example.com")
    make_agent(tenant)
    given = {"tenant": tenant.id, "owner": "KIM@example.com", "reviewer": "ann@example.com", "days": 7}

    wrong: Any = officer.post(reverse(ADD), {**given, "owner": "nobody@example.com"})
    assert "owner" in wrong.context_data["adminform"].form.errors
    assert officer.post(reverse(ADD), {**given, "quarterly": "on"}).status_code == 302

    review = AccessReview.objects.get()
    assert (review.agent_count, review.every, review.reviewer) == (1, "quarter", "ann@example.com")
    assert review.started_by == actor_id_of("officer")


def test_a_decision_leads_to_the_next_agent(officer: Client, tenant: Tenant) -> None:
    first, second = make_scoped_agent(tenant, name="one"), make_scoped_agent(tenant, name="two")
    review = open_review(tenant)

    answer = officer.post(page_of(review), {"agent": first.id, "act": "reduce", "note": "spring clean"})

    assert answer.url.endswith(f"agent={second.id}")  # type: ignore[attr-defined]
    item = AccessReviewItem.objects.get(review=review, agent_id=first.id)
    assert (item.removed, item.decided_by) == (["refund", "delete_account"], actor_id_of("officer"))
    shown = officer.get(page_of(review)).content.decode()
    assert "<strong>1</strong> of 2 to decide" in shown
    assert "refund, delete_account" in shown
    officer.post(page_of(review), {"agent": second.id, "act": "retire"})
    second.refresh_from_db()
    review.refresh_from_db()
    assert (second.status, review.state) == ("retired", "done")
    assert "All are decided" in officer.get(page_of(review)).content.decode()


def test_ticked_agents_are_decided_together(officer: Client, tenant: Tenant) -> None:
    agents = copy_agent(make_scoped_agent(tenant), 3)
    review = open_review(tenant)
    ticked = [agents[0].id, agents[2].id]

    officer.post(page_of(review), {"agent": agents[1].id, "act": "suspend_ticked", "ticked": ticked})

    made = decisions(review)
    assert [made[agent.id] for agent in agents] == ["suspend", "", "suspend"]
    assert Agent.objects.filter(status="suspended").count() == 2


@pytest.mark.parametrize(
    "given",
    [{"act": "keep"}, {"act": "keep_ticked"}, {"act": "drop"}, {"act": "keep", "note": "x" * 401},
     {"act": "keep_ticked", "ticked": "x"}],
)  # fmt: skip
def test_nonsense_decides_nothing(officer: Client, tenant: Tenant, given: dict[str, Any]) -> None:
    agent, review = make_agent(tenant), open_review(tenant)
    of_it = {} if given == {"act": "keep"} else {"agent": agent.id}

    answer = officer.post(page_of(review), {**of_it, **given}, follow=True)

    assert "Nothing was decided" in answer.content.decode()
    assert set(decisions(review).values()) == {""}


def test_a_note_with_a_nul_is_kept_without_it(officer: Client, tenant: Tenant) -> None:
    agent = make_agent(tenant)
    review = open_review(tenant)

    officer.post(page_of(review), {"agent": agent.id, "act": "keep", "note": "x\0y"})

    assert AccessReviewItem.objects.get(review=review).note == "xy"


def test_only_officers_of_the_tenant_decide(tenant: Tenant) -> None:
    agent, review = make_agent(tenant), open_review(tenant)
    auditor = console_of(make_member(tenant, Role.AUDITOR))
    stranger = console_of(make_member(make_tenant(), Role.OFFICER, "stranger"))
    keep = {"agent": agent.id, "act": "keep"}

    assert auditor.get(page_of(review)).status_code == 200
    assert auditor.post(page_of(review), keep).status_code == 403
    assert (
        stranger.get(page_of(review)).status_code == stranger.post(page_of(review), keep).status_code == 302
    )
    assert set(decisions(review).values()) == {""}


def test_a_page_of_500_agents_takes_few_statements(officer: Client, tenant: Tenant) -> None:
    agents = copy_agent(make_scoped_agent(tenant), 500)
    for agent in agents[1:60]:
        use(agent, "refund")
    review = open_review(tenant)
    officer.get(page_of(review))

    for agent in (agents[0], agents[499]):
        count, status = queries_of(officer, f"{page_of(review)}?agent={agent.id}")
        assert (status, count <= MOST_QUERIES) == (200, True), count
