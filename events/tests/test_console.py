"""Events in the console: reasons in words, the queue of what is to be reviewed, and officers' verdicts."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.tests.console import actor_id_of, console_of, make_member
from events.models import BehaviorEvent, EventReview
from events.risk.scoring.model import in_words
from events.risk.scoring.rules import worth
from events.tests.factories import store_event
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

LIST = "admin:events_behaviorevent_changelist"


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


@pytest.fixture
def agent(acme: Tenant) -> Agent:
    return make_agent(acme)


def stored(agent: Agent, score: float = 0.5, **fields: Any) -> BehaviorEvent:
    return store_event(agent, score, now(), details={"to": "mule-7"}, **fields)


def run(client: Client, action: str, event: BehaviorEvent, **data: Any) -> Any:
    return client.post(reverse(f"admin:events_behaviorevent_{action}", args=[event.pk]), data)


def page(client: Client, event: BehaviorEvent) -> str:
    return client.get(reverse("admin:events_behaviorevent_change", args=[event.pk])).content.decode()


def queue(client: Client, review: str = "waiting") -> set[Any]:
    listed = client.get(reverse(LIST), {"review": review}).context["cl"].queryset
    return set(listed.values_list("id", flat=True))


def test_officer_confirms_and_dismisses(acme: Tenant, agent: Agent) -> None:
    event = stored(agent)
    client = console_of(make_member(acme, Role.OFFICER))

    run(client, "confirm", event, note="not ordered")
    confirmed = page(client, event)
    run(client, "dismiss", event)

    assert [review.verdict for review in EventReview.objects.of_event(event.id)] == ["dismissed", "confirmed"]
    entries = AuditEntry.objects.for_tenant(acme.id).of_type("event.reviewed")
    assert {entry.actor_id for entry in entries} == {actor_id_of("officer")}
    assert "not ordered" in confirmed
    assert "mule-7" in confirmed
    assert "Confirm as attack" not in confirmed
    assert "Dismiss" in confirmed


def test_queue_holds_what_is_not_low_and_not_reviewed(acme: Tenant, agent: Agent) -> None:
    medium, high, low = stored(agent), stored(agent, 0.9), stored(agent, 0.1)
    done, missed = stored(agent), stored(agent, 0.1)
    client = console_of(make_member(acme, Role.OFFICER))
    run(client, "confirm", done)
    run(client, "dismiss", done)
    run(client, "confirm", missed)

    assert queue(client) == {medium.id, high.id}
    assert queue(client, "confirmed") == {missed.id}
    assert queue(client, "dismissed") == {done.id}
    assert queue(client, "nonsense") == {medium.id, high.id, low.id, done.id, missed.id}


def test_reasons_are_told_in_words(acme: Tenant, agent: Agent) -> None:
    event = stored(
        agent,
        reasons=[
            {"name": "external_host", "observed": "evil.example", "expected": "acme.example", "weight": 1.5},
            {"name": "made_up", "observed": "<b>\u202e", "expected": "", "weight": "much"},
        ],
    )

    shown = page(console_of(make_member(acme, Role.AUDITOR)), event)

    assert "Leaves the agent&#x27;s own domain" in shown
    assert "evil.example" in shown
    assert "weight 1.5" in shown
    assert "Made up" in shown
    assert "&lt;b&gt;\\u202e" in shown


def test_reason_of_an_earlier_model_is_its_name_in_words() -> None:
    assert in_words("some_thing") == "Some thing"


def test_an_effect_is_a_weight_but_of_a_rule_its_floor() -> None:
    told = [worth("burst", value) for value in (0, 2.1, None, True, 1e9)]

    assert told == ["weight 0.0", "weight 2.1", "-", "-", "weight 1000000000.0"]
    assert worth("off_scope", 4.9) == "rule: at least 0.90"
