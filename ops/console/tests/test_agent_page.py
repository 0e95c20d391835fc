"""An agent's page answers an officer's questions: state and why, risk, scope, owner, certificate."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from agents.models import Agent, AgentStatus
from agents.tests.factories import make_agent, make_suspended_agent
from certificates.models import Certificate
from certificates.querysets import HOLD
from certificates.tests.factories import make_certified_agent
from compliance.console.tests.test_console_queries import queries_of
from compliance.core.clock import now
from compliance.tests.console import ACTOR, console_of, make_member
from delegation.reviews.models import AccessReviewItem
from delegation.reviews.tests.factories import open_review
from delegation.stops import services as stops
from delegation.stops.models import KindStop
from events.figures import usage
from events.models import BehaviorEvent
from events.risk import rolling
from events.tests.factories import make_event, make_high_event, store_event
from incidents.models import Incident
from tenancy.models import Role, Tenant

KIM = {"owner_name": "Kim Berg", "owner_email": "kim@example.com"}


@pytest.fixture
def client(acme: Tenant) -> Client:
    return console_of(make_member(acme, Role.OFFICER))


def shown(client: Client, agent: Agent) -> Any:
    return client.get(reverse("admin:agents_agent_change", args=[agent.pk]))


def text_of(answer: Any) -> str:
    """The page without tags, with single spaces."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode())))


def link(page: str, row: Any) -> str:
    return f'href="{reverse(f"admin:{page}_change", args=[row.pk])}"'


def halted(acme: Tenant) -> Agent:
    agent = make_certified_agent(acme, metadata={"permitted_actions": ["send_email"]}, **KIM)
    for _ in range(settings.HIGH_RISK_STRIKES):
        make_high_event(agent)
    agent.refresh_from_db()
    return agent


def test_stopped_agent_links_its_strikes_the_rule_and_the_incident(acme: Tenant, client: Client) -> None:
    agent = halted(acme)
    answer = shown(client, agent)

    html, text = answer.content.decode(), text_of(answer)
    assert agent.status == AgentStatus.SUSPENDED
    assert "by the rule: 3 strikes within 15 minutes" in text
    strikes = BehaviorEvent.objects.of_agent(agent.id)
    assert all(link("events_behaviorevent", event) in html for event in strikes)
    assert link("incidents_incident", Incident.objects.get(tenant=acme)) in html
    assert link("tenancy_tenant", acme) in html
    rule = client.get(reverse("admin:tenancy_tenant_change", args=[acme.pk]))
    assert "3 high-risk events within 15 minutes stop" in text_of(rule)


def test_strikes_of_a_life_before_are_not_the_reason(acme: Tenant, client: Client) -> None:
    agent = halted(acme)
    Agent.objects.filter(id=agent.id).update(
        status="active", reinstated_at=now(), stopped_by_strikes=None, status_changed_at=now()
    )

    assert "of the 3 strikes" not in text_of(shown(client, agent))


def test_active_agent_shows_strikes_that_count(acme: Tenant, client: Client) -> None:
    agent = make_certified_agent(acme)
    event = make_high_event(agent)

    answer = shown(client, agent)

    assert "with 1 of the 3 strikes within 15 minutes" in text_of(answer)
    assert f"/{event.id}/" in answer.content.decode()


def test_person_who_suspended_it_is_named(acme: Tenant) -> None:
    agent = make_certified_agent(acme)
    client = console_of(make_member(acme, Role.OFFICER, "olga"))
    client.post(reverse("admin:agents_agent_suspend", args=[agent.pk]), {"reason": "odd <b>transfers</b>"})

    answer = shown(client, agent)

    assert re.search(r"Suspended since .{5,20} by olga: odd <b>transfers</b>\.", text_of(answer))
    assert "<b>transfers" not in answer.content.decode()


def test_stop_of_a_kind_is_linked(acme: Tenant, client: Client) -> None:
    agent, moment = make_certified_agent(acme, model_hash="sha256:bad"), now()
    asked: dict[str, Any] = {"match": {"model_hash": "sha256:bad"}, "revoke": False, "reason": "it leaks"}
    stop = stops.begin(tenant_id=acme.id, reason_code=HOLD, actor=ACTOR, now=moment, **asked)
    stops.work(stop=stop, now=moment)

    answer = shown(client, agent)

    assert link("stops_kindstop", KindStop.objects.get()) in answer.content.decode()
    assert "by the stop of 1 agent: it leaks." in text_of(answer)


@pytest.mark.parametrize("status", list(AgentStatus))
def test_every_state_has_a_sentence(acme: Tenant, client: Client, status: AgentStatus) -> None:
    agent = make_agent(acme)
    Agent.objects.filter(id=agent.id).update(status=status, dormant_at=now(), would_have_stopped_at=now())

    assert f"{status.label} since" in text_of(shown(client, agent))


def test_owner_backup_and_certificate_are_shown(acme: Tenant, client: Client) -> None:
    agent = make_certified_agent(acme, **KIM)
    orphan = make_agent(acme)

    text = text_of(shown(client, agent))

    end = Certificate.objects.get(agent=agent).expires_at
    assert "Kim Berg kim@example.com" in text
    assert f"ends {end:%Y-%m-%d %H:%M} UTC" in text
    assert "Nobody answers for it" in text_of(shown(client, orphan))


def test_scope_is_compared_with_what_events_name(acme: Tenant, client: Client) -> None:
    agent = make_certified_agent(acme, metadata={"permitted_actions": ["send_email", "delete_table"]})
    make_event(agent, details={"tool": "sendEmail"})
    make_event(agent, details={"tool": "format_disk"})
    usage.sum_up(now=now() + timedelta(minutes=2))

    lists = {title: str(names) for title, names in shown(client, agent).context["summary"]["lists"]}

    assert list(lists) == ["Permitted, not used", "Permitted and used", "Not permitted, yet named"]
    for names, name in zip(lists.values(), ["delete_table", "send_email", "format_disk"], strict=True):
        assert name in names


def test_chart_marks_strikes_and_stops_and_has_a_table(acme: Tenant, client: Client) -> None:
    agent = halted(acme)
    store_event(agent, 0.5, now() - timedelta(days=3))
    rolling.sum_up(now=now())
    decided = {"decision": "keep", "decided_by": "x", "decided_by_kind": "person", "decided_at": now()}
    AccessReviewItem.objects.filter(review=open_review(acme)).update(**decided)

    answer = shown(client, agent)
    (chart,) = answer.context["summary"]["charts"]

    (plot,) = chart.plots
    assert plot.summary.endswith("3 strikes, 1 stop, 1 review")
    assert {bar.kind for bar in plot.bars} == {"", "strike", "stop", "review"}
    assert chart.columns == ["Day", "Highest score", "Strikes", "Stops", "Reviews"]
    assert chart.rows[0][2:] == ["3", "1", "1"]
    assert chart.rows[3][1:] == ["0.50", "", "", ""]


def test_page_takes_as_many_statements_whatever_happened(acme: Tenant, client: Client) -> None:
    agent = halted(acme)
    page = reverse("admin:agents_agent_change", args=[agent.pk])
    client.get(page)  # what a process reads once
    before, _ = queries_of(client, page)
    for hours in range(60):
        store_event(agent, 0.9 if hours % 2 else 0.2, now() - timedelta(hours=hours), details={"tool": "pay"})

    after, status = queries_of(client, page)

    assert (after, status) == (before, 200)
    assert 10 < after <= 20


def test_lists_filter_and_mark_dormant_agents_and_those_without_owner(acme: Tenant, client: Client) -> None:
    sleeping, owned = make_agent(acme, name="sleeping"), make_agent(acme, name="owned", **KIM)
    Agent.objects.filter(id=sleeping.id).update(dormant_at=now())
    page = reverse("admin:agents_agent_changelist")

    answers = [
        client.get(page, query) for query in ({"dormant": "yes"}, {"dormant": "no"}, {"owner": "none"})
    ]

    assert [list(answer.context["cl"].queryset) for answer in answers] == [[sleeping], [owned], [sleeping]]
    assert "dormant" in text_of(answers[0])
    assert "no owner" in text_of(answers[2])


def test_address_of_an_owner_leads_to_all_agents_that_have_it(acme: Tenant, client: Client) -> None:
    one, other = make_agent(acme, **KIM), make_agent(acme, **{f"backup_{k}": v for k, v in KIM.items()})
    make_agent(acme)

    url = re.search(r'href="([^"]+q=kim%40example\.com)"', shown(client, one).content.decode())

    assert url is not None
    assert set(client.get(url[1]).context["cl"].queryset) == {one, other}


def test_owner_is_replaced_at_all_agents(acme: Tenant, client: Client) -> None:
    one, other = make_agent(acme, **KIM), make_agent(acme, **{f"backup_{k}": v for k, v in KIM.items()})
    lee = {"role": "owner", "name": "Lee Sand", "email": "lee@example.com"}

    answer = client.post(reverse("admin:agents_agent_successor", args=[one.pk]), lee, follow=True)
    none_there = client.post(
        reverse("admin:agents_agent_successor", args=[one.pk]), {**lee, "role": "backup_owner"}, follow=True
    )

    one.refresh_from_db()
    other.refresh_from_db()
    assert (one.owner_email, other.backup_owner_email) == ("lee@example.com", "lee@example.com")
    assert "2 agents" in text_of(answer)
    assert "The agent has no backup owner" in text_of(none_there)


def test_page_of_a_suspended_agent_without_certificate(acme: Tenant, client: Client) -> None:
    assert "None yet" in text_of(shown(client, make_suspended_agent(acme)))
