"""POST /v1/events/{id}/review: a verdict for good, a change of mind, borders."""

from typing import Any

import pytest
from django.db import DatabaseError

from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.stores.rows import AppendOnly
from compliance.tests.client import ApiClient
from events.models import EventReview
from events.tests.conftest import World
from events.tests.factories import make_event, make_high_event


def review(client: ApiClient, event: Any, verdict: str = "confirmed", **body: Any) -> Any:
    return client.post(f"/v1/events/{event.id}/review", {"verdict": verdict, **body})


def audited(world: World) -> list[dict[str, Any]]:
    entries = AuditEntry.objects.for_tenant(world.tenant.id).filter(event_type="event.reviewed")
    return [entry.metadata or {} for entry in entries.order_by("id")]


def test_verdict_is_recorded_and_shown_beside_the_reasons(world: World) -> None:
    event = make_high_event(world.agent)

    answer = review(world.api, event, note="Nobody asked for this.")

    assert answer.status_code == 201
    made = answer.json()["data"]
    assert made["event_id"] == event.id
    assert made["verdict"] == "confirmed"
    assert made["note"] == "Nobody asked for this."
    assert made["reviewed_by"].startswith("api_key:")
    shown = world.api.get(f"/v1/events/{event.id}").json()["data"]
    assert shown["review"] == made
    assert shown["reasons"]


def test_event_that_nobody_reviewed_says_so(world: World) -> None:
    event = make_event(world.agent)

    assert world.api.get(f"/v1/events/{event.id}").json()["data"]["review"] is None


def test_missed_attack_can_be_confirmed(world: World) -> None:
    assert review(world.api, make_event(world.agent)).status_code == 201


def test_officer_may_change_their_mind_and_every_change_is_audited(world: World) -> None:
    event = make_high_event(world.agent)

    review(world.api, event, note="looks bad")
    answer = review(world.api, event, "dismissed", note="was ordered by phone")

    assert answer.status_code == 201
    assert world.api.get(f"/v1/events/{event.id}").json()["data"]["review"]["verdict"] == "dismissed"
    assert [(entry["verdict_before"], entry["verdict"], entry["note"]) for entry in audited(world)] == [
        (None, "confirmed", "looks bad"),
        ("confirmed", "dismissed", "was ordered by phone"),
    ]


@pytest.mark.parametrize("again", [{}, {"note": None}, {"note": "looks bad"}])
def test_repeated_verdict_adds_nothing(world: World, again: dict[str, Any]) -> None:
    event = make_high_event(world.agent)
    first = review(world.api, event, note="looks bad")

    answer = review(world.api, event, **again)

    assert answer.status_code == 200
    assert answer.json() == first.json()
    assert len(audited(world)) == 1


def test_another_note_is_another_review(world: World) -> None:
    event = make_high_event(world.agent)
    review(world.api, event)

    assert review(world.api, event, note="case 17").status_code == 201
    assert [entry["note"] for entry in audited(world)] == [None, "case 17"]


def test_reviews_are_append_only(owned: None, world: World) -> None:
    review(world.api, make_high_event(world.agent))
    made = EventReview.objects.get(tenant=world.tenant)

    with pytest.raises(AppendOnly):
        made.save()
    with pytest.raises(AppendOnly):
        made.delete()
    for change in (EventReview.objects.all().delete, lambda: EventReview.objects.update(note="x")):
        with pytest.raises(DatabaseError, match="append-only"), environments.atomic():
            change()
