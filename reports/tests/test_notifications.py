"""Drafts of notifications: filled from the record, what people know marked, frozen and audited."""

import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import rfc8785
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from certificates import services as certificates
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient
from compliance.tests.console import console_of, make_member
from events.tests.factories import judge, make_high_event
from incidents import services as incidents
from incidents.merging import merge
from incidents.models import Incident, TimelineEntry
from incidents.tests.factories import change, make_incident
from reports.models import NotificationDraft
from reports.notifications import services
from reports.notifications.record import MOST_ENTRIES, MOST_EVENTS, gather
from reports.notifications.services import compose, sections_of
from reports.notifications.values import values_of
from reports.vocabulary import NotificationTemplate
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_key, make_tenant

ACTOR = Actor.system("tests")
EVERY = pytest.mark.parametrize("template", list(NotificationTemplate))


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant("Acme")


def stopped_agent(tenant: Tenant) -> Agent:
    """An agent that its third high-risk event stopped a moment ago."""
    agent = make_certified_agent(
        tenant, name="trade-bot", model="m", version="2", metadata={"permitted_actions": ["read"]}
    )
    for _ in range(3):
        make_high_event(agent, session_id="s-1")
    return Agent.objects.get(id=agent.id)


def revoked_agent(tenant: Tenant) -> Agent:
    """An agent whose certificate a person revoked, without any event."""
    agent = make_certified_agent(tenant)
    certificates.revoke(
        tenant_id=tenant.id,
        certificate_id=Certificate.objects.get(agent=agent).id,
        reason="keyCompromise",
        actor=ACTOR,
        now=now(),
    )
    return agent


def incident_of(agent: Agent) -> Incident:
    return Incident.objects.get(agent_id=agent.id)


def attach(incident: Incident, name: str) -> None:
    incidents.update(
        tenant_id=incident.tenant_id,
        incident_id=incident.id,
        changes={},
        attachment={"name": name, "size": 3, "sha256": "ab" * 32},
        actor=ACTOR,
        now=now(),
    )


def draft(incident: Incident, template: str = NotificationTemplate.DORA_FINAL) -> NotificationDraft:
    return services.draft(
        tenant_id=incident.tenant_id,
        incident_id=incident.id,
        template=NotificationTemplate(template),
        actor=ACTOR,
        now=now(),
    )


def fields_of(made: NotificationDraft) -> dict[str, Any]:
    return {field["key"]: field for part in made.content["sections"] for field in part["fields"]}


def value(made: NotificationDraft, key: str) -> str:
    found: str = fields_of(made)[key]["value"]
    return found


@EVERY
@pytest.mark.parametrize("stop", [stopped_agent, revoked_agent])
def test_fields_that_follow_from_the_record_are_filled_right_after_the_revocation(
    tenant: Tenant, template: str, stop: Any
) -> None:
    incident = incident_of(stop(tenant))

    made = draft(incident, template)

    filled = made.content["filled"]
    assert made.created_at - incident.opened_at < timedelta(seconds=60)
    assert filled["from_record"] / filled["record_fields"] >= 0.8
    if stop is stopped_agent:
        assert filled["from_record"] == filled["record_fields"]


@EVERY
def test_counts_follow_the_fields_and_only_fields_from_the_record_have_a_source(
    tenant: Tenant, template: NotificationTemplate
) -> None:
    listed = [field for section in sections_of(template) for field in section["fields"]]
    record = gather(incident_of(stopped_agent(tenant)), now=now())

    filled = compose(record, template, version=1)["filled"]

    own = [field["key"] for field in listed if field["from"] == "record"]
    people = [field["key"] for field in listed if field["from"] == "people"]
    assert len(own) >= 5
    assert not any(values_of(record, template).get(key) for key in people)
    assert (filled["record_fields"], filled["fields"]) == (len(own), len(listed))
    assert filled["from_record"] == sum(values_of(record, template).get(key) is not None for key in own)


@EVERY
def test_what_only_people_know_is_marked_with_a_hint(tenant: Tenant, template: str) -> None:
    fields = fields_of(draft(incident_of(stopped_agent(tenant)), template))

    people = [field for field in fields.values() if field["from"] == "people"]
    assert people
    assert all(field["value"] is None and field["to_state"] for field in people)
    assert all((field["value"] is None) is (field["to_state"] is not None) for field in fields.values())


def test_values_are_those_of_the_rows(tenant: Tenant) -> None:
    agent = stopped_agent(tenant)
    incident, certificate = incident_of(agent), Certificate.objects.get(agent=agent)
    judge(TimelineEntry.objects.get(incident=incident).event_id)

    ai_act, dora = draft(incident, "ai_act"), draft(incident)

    assert value(ai_act, "A3") == value(dora, "2.1") == incident.reference
    assert value(ai_act, "C1") == "trade-bot"
    assert value(ai_act, "C2") == "m, 2"
    assert value(ai_act, "C3") == agent.model_hash
    assert certificate.serial_number in value(ai_act, "C4")
    assert "Permitted actions: read" in value(ai_act, "C5")
    assert value(ai_act, "D6").startswith("3 high-risk events (unauthorized_access_attempt); first ")
    assert value(ai_act, "E1") == "1 confirmed as attack, 0 dismissed, 2 not reviewed"
    assert "s after the first high-risk event" in value(ai_act, "F2")
    assert "Monitoring systems" in value(dora, "2.7")
    assert f"{incident.detected_at:%Y-%m-%dT%H:%M:%S}Z" == value(dora, "2.2")
    assert value(dora, "3.15") == "00:00:00 (until it was contained)"
    assert "auto_revocation" in value(dora, "3.34")
    assert "s-1" in value(dora, "3.35")
    assert value(dora, "4.15") == "No"


def test_revocation_by_hand_is_told_as_such(tenant: Tenant) -> None:
    made = draft(incident_of(revoked_agent(tenant)), "ai_act")

    assert "began with a person's act" in value(made, "D6")
    assert value(made, "E1") == "0 confirmed as attack, 0 dismissed, 0 not reviewed"


def test_statements_fill_their_fields(tenant: Tenant) -> None:
    incident = incident_of(stopped_agent(tenant))
    assert fields_of(draft(incident))["2.3"]["value"] is None

    stated = change(incident, dora_class="major", serious_harm="health")

    assert value(draft(incident), "2.3") == f"{stated.classified_at:%Y-%m-%dT%H:%M:%SZ}"
    assert value(draft(incident, "ai_act"), "D4") == "Serious harm to health"


def test_versions_are_numbered_frozen_and_audited(tenant: Tenant) -> None:
    incident = incident_of(stopped_agent(tenant))

    first, second, other = draft(incident), draft(incident), draft(incident, "ai_act")

    assert [made.version for made in (first, second, other)] == [1, 2, 1]
    assert first.digest == hashlib.sha256(rfc8785.dumps(json.loads(first.document))).hexdigest()
    entries = AuditEntry.objects.for_tenant(tenant.id).of_type("notification.drafted")
    assert {(entry.metadata or {})["sha256"] for entry in entries} == {
        made.digest for made in (first, second, other)
    }
    assert TimelineEntry.objects.of_incidents([incident.id]).filter(kind="drafted").count() == 3
    with pytest.raises(RuntimeError):
        first.delete()
    with pytest.raises(DatabaseError), environments.atomic():
        NotificationDraft.objects.filter(id=first.id).update(digest="0" * 64)


def test_record_is_read_before_the_incident_is_locked(tenant: Tenant) -> None:
    """A revocation joins the incident, and waits for its lock."""
    incident = incident_of(stopped_agent(tenant))

    with CaptureQueriesContext(connection) as queries:
        draft(incident)

    told = [query["sql"] for query in queries]
    locked = next(index for index, sql in enumerate(told) if "FOR NO KEY UPDATE" in sql)
    assert any("events_behaviorevent" in sql for sql in told[:locked])
    assert not any("events_behaviorevent" in sql for sql in told[locked:])


def test_cut_list_of_events_is_told_as_cut(tenant: Tenant) -> None:
    record = gather(incident_of(stopped_agent(tenant)), now=now())
    many = replace(record, events=record.events[:1] * MOST_EVENTS)

    told = [values_of(many, NotificationTemplate.AI_ACT)[key] or "" for key in ("D5", "D6")]

    assert all("200 or more high-risk events" in text for text in told)
    assert "of the first 200" in (values_of(many, NotificationTemplate.AI_ACT)["E1"] or "")


def test_export_has_the_whole_record(api: ApiClient, tenant: Tenant) -> None:
    agent = stopped_agent(tenant)
    incident = incident_of(agent)
    made = draft(incident)
    client = api.as_key(make_key(tenant, ["incidents:read"]))

    found = client.get(f"/v1/incidents/{incident.id}/export").json()["data"]

    assert found["incident"]["reference"] == incident.reference
    assert found["agent"]["name"] == "trade-bot"
    assert found["agent"]["status"] == "suspended"
    assert [row["status"] for row in found["certificates"]] == ["revoked"]
    assert len(found["events"]) == 3
    assert "details" not in found["events"][0]
    assert {step["action"] for step in found["steps"]} >= {"agent.suspended", "certificate.revoked"}
    assert [entry["kind"] for entry in found["timeline"]] == ["opened", "drafted"]
    assert found["drafts"][0]["digest"] == made.digest
    assert found["drafts"][0]["document"] == made.content
    assert found["truncated"] == []


def test_export_names_the_lists_that_leave_rows_out(api: ApiClient, tenant: Tenant) -> None:
    incident = incident_of(stopped_agent(tenant))
    note = {"kind": "note", "at": now(), "actor_kind": "system", "actor_id": "tests", "text": "again"}
    TimelineEntry.objects.bulk_create(TimelineEntry(incident=incident, **note) for _ in range(MOST_ENTRIES))
    client = api.as_key(make_key(tenant, ["incidents:read"]))

    found = client.get(f"/v1/incidents/{incident.id}/export").json()["data"]

    assert found["truncated"] == ["timeline"]
    assert len(found["timeline"]) == MOST_ENTRIES


def test_drafts_and_export_of_merged_incidents_cover_all_agents(api: ApiClient, tenant: Tenant) -> None:
    first, second = stopped_agent(tenant), stopped_agent(tenant)
    kept = incident_of(first)
    merge(tenant_id=tenant.id, incident_id=incident_of(second).id, into=kept.id, actor=ACTOR, now=now())

    found = api.as_key(make_key(tenant)).get(f"/v1/incidents/{kept.id}/export").json()["data"]
    drafted = draft(kept, "ai_act").document

    assert [agent["id"] for agent in found["agents"]] == [str(first.id), str(second.id)]
    assert found["agent"]["id"] == str(first.id)
    assert len(found["certificates"]) == 2
    assert len(found["events"]) == 6
    assert all(str(agent.id) in drafted and agent.did in drafted for agent in (first, second))
    assert "1 further agent belongs to the incident" in drafted


def test_draft_of_a_merged_incident_keeps_what_is_known_of_the_ended_one(tenant: Tenant) -> None:
    first, second = make_certified_agent(tenant, name="first"), stopped_agent(tenant)
    before = incident_of(second)
    kept = make_incident(tenant, agent_id=first.id, agent_name=first.name)
    attach(before, "evidence.log")
    revoked_at = Certificate.objects.get(agent=second).revoked_at

    merge(tenant_id=tenant.id, incident_id=before.id, into=kept.id, actor=ACTOR, now=now())

    kept.refresh_from_db()
    made, dora = draft(kept, "ai_act"), draft(kept)
    assert revoked_at is not None
    assert f"{revoked_at:%Y-%m-%dT%H:%M:%S}Z" in value(made, "D5")
    assert value(made, "F2").startswith("Revoked ")
    assert all(str(agent.id) in value(made, "G1") for agent in (first, second))
    assert "evidence.log" in value(made, "G2")
    assert value(dora, "4.15") == "No"


def test_earlier_incidents_of_every_agent_are_told_as_recurring(tenant: Tenant) -> None:
    agent = revoked_agent(tenant)
    closed = change(incident_of(agent), serious_harm="not_serious", dora_class="not_major", state="closed")
    kept = make_incident(tenant, agent_id=make_certified_agent(tenant).id)
    again = make_incident(tenant, agent_id=agent.id)

    merge(tenant_id=tenant.id, incident_id=again.id, into=kept.id, actor=ACTOR, now=now())

    made = draft(Incident.objects.get(id=kept.id))
    assert value(made, "4.15") == "Yes: 1 incident of these agents in six months"
    assert value(made, "4.16") == f"{closed.detected_at:%Y-%m-%dT%H:%M:%SZ}"


def test_officer_drafts_and_downloads_in_the_console(tenant: Tenant) -> None:
    incident = incident_of(stopped_agent(tenant))
    officer = console_of(make_member(tenant, Role.OFFICER))

    page = officer.post(
        reverse("admin:incidents_incident_draft", args=[incident.pk]),
        {"template": "dora_initial"},
        follow=True,
    ).content.decode()

    made = NotificationDraft.objects.get(incident=incident)
    assert made.digest in page
    for kind, begin in (("pdf", b"%PDF"), ("json", b"{")):
        address = reverse(f"admin:incidents_incident_draft_{kind}", args=[incident.pk, made.pk])
        assert address in page
        assert officer.get(address).content.startswith(begin)
    export = officer.get(reverse("admin:incidents_incident_export", args=[incident.pk]))
    assert export.json()["incident"]["reference"] == incident.reference
    entries = AuditEntry.objects.for_tenant(tenant.id)
    assert entries.of_type("notification.downloaded").count() == 2
    assert entries.of_type("incident.exported").count() == 1


def test_drafts_are_for_officers_and_their_tenant(tenant: Tenant) -> None:
    incident = incident_of(stopped_agent(tenant))
    made = draft(incident)
    auditor = console_of(make_member(tenant, Role.AUDITOR))
    stranger = console_of(make_member(make_tenant("Rival"), Role.OFFICER, "stranger"))
    other = incident_of(revoked_agent(tenant))

    refused = auditor.post(
        reverse("admin:incidents_incident_draft", args=[incident.pk]), {"template": "ai_act"}
    )

    assert refused.status_code == 403
    assert auditor.get(
        reverse("admin:incidents_incident_draft_pdf", args=[incident.pk, made.pk])
    ).content.startswith(b"%PDF")
    for client, keys in (
        (stranger, [incident.pk, made.pk]),
        (auditor, [other.pk, made.pk]),
        (auditor, [incident.pk, new_id()]),
    ):
        answer = client.get(reverse("admin:incidents_incident_draft_json", args=keys))
        assert answer.status_code == 302
    assert stranger.get(reverse("admin:incidents_incident_export", args=[incident.pk])).status_code == 302
