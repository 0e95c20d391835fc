"""The audit log in the form of OCSF, as the released schema has it."""

import json
from typing import Any

import pytest

from auditlog import services
from auditlog.exporting.ocsf import ocsf_of_entry
from auditlog.models import AuditEntry
from auditlog.sealing.stored_rows import sealed_entry_of
from auditlog.tests.exports import exported
from auditlog.tests.factories import seal_and_sign
from auditlog.vocabulary import Actor, ActorKind, AuditAction
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient
from compliance.tests.ocsf import problems
from tenancy.tests.factories import make_key, make_tenant

ACTORS = {kind: Actor(kind, f"{kind}:1") for kind in ActorKind}


def entry(action: str, *, actor: ActorKind = ActorKind.PERSON, **more: Any) -> dict[str, Any]:
    """The disclosure of an entry."""
    blank = {"affected_id": None, "description": None, "metadata": None}
    return {
        "id": str(new_id()), "tenant_id": str(new_id()), "event_type": action, "actor_kind": actor.value,
        "actor_type": "user", "actor_id": "who", "created_at": "2026-11-23T08:00:00.123456Z", **blank, **more,
    }  # fmt: skip


@pytest.mark.parametrize("action", AuditAction.values)
def test_every_action_meets_the_schema_with_much_and_with_little(action: str) -> None:
    said = {"agent_id": str(new_id()), "address": "192.0.2.7", "deep": [{"n": 1.5}], "event_id": "e"}
    for kind in ActorKind:
        full = entry(action, actor=kind, affected_id="a1", description="what", metadata=said)

        assert problems(ocsf_of_entry(7, full)) == []
        assert problems(ocsf_of_entry(0, entry(action, actor=kind, actor_id=None))) == []
        assert problems(ocsf_of_entry(0, entry(action, actor=kind, metadata=["text"]))) == []


@pytest.mark.parametrize(
    ("action", "kind", "activity"),
    [
        ("agent.created", 3004, 1), ("report.downloaded", 3004, 2), ("tenant.enforcement_changed", 3004, 99),
        ("webhook.deleted", 3004, 4), ("agent.suspended", 3004, 12), ("certificate.held", 3004, 12),
        ("agent.reinstated", 3004, 13), ("certificate.revoked", 3004, 11), ("decision.denied", 3004, 99),
        ("person.signed_in", 3002, 1), ("person.signed_out", 3002, 2), ("person.sign_in_failed", 3002, 1),
        ("event.high_risk", 2004, 1), ("agent.scope_mismatch", 2004, 1),
    ],
)  # fmt: skip
def test_actions_have_their_class_and_activity(action: str, kind: int, activity: int) -> None:
    shown = ocsf_of_entry(0, entry(action))

    assert (shown["class_uid"], shown["activity_id"]) == (kind, activity)


def test_sign_in_names_the_person_the_address_and_whether_it_worked() -> None:
    said = {"address": "2001:db8::1"}

    good = ocsf_of_entry(0, entry("person.signed_in", affected_id="p1", metadata=said))
    bad = ocsf_of_entry(0, entry("person.sign_in_failed", metadata=said))

    assert (good["status_id"], bad["status_id"]) == (1, 2)
    assert (good["user"], bad["user"]) == ({"uid": "p1"}, {"name": "unknown"})
    assert good["src_endpoint"] == {"ip": "2001:db8::1"}


def test_finding_names_the_agent_and_the_entry() -> None:
    found = entry("event.high_risk", affected_id="event", metadata={"agent_id": "agent"})

    shown = ocsf_of_entry(0, found)

    assert shown["resources"] == [{"uid": "agent", "type": "agent"}]
    assert (shown["finding_info"]["uid"], shown["severity_id"]) == (found["id"], 4)


def test_entry_keeps_its_time_place_tenant_and_metadata() -> None:
    given = entry("agent.updated", affected_id="a1", description="what", metadata={"a": 1})

    shown = ocsf_of_entry(41, given)

    assert (shown["time"], shown["metadata"]["original_time"]) == (1795420800123, given["created_at"])
    assert (shown["metadata"]["sequence"], shown["metadata"]["uid"]) == (41, given["id"])
    assert (shown["metadata"]["tenant_uid"], shown["metadata"]["event_code"]) == (
        given["tenant_id"],
        "agent.updated",
    )
    assert (shown["entity"]["uid"], shown["message"], shown["unmapped"]) == ("a1", "what", {"a": 1})
    assert (shown["metadata"]["version"], shown["metadata"]["labels"]) == ("1.8.0", ["environment:live"])


def test_export_holds_the_events_of_the_tenants_own_sealed_entries_alone(api: ApiClient) -> None:
    tenant = make_tenant()
    client = api.as_key(make_key(tenant))
    made = services.record(
        tenant_id=tenant.id, action=AuditAction.AGENT_UPDATED, affected_id="ü\n", actor=Actor.system("s"),
        now=now(),
    )  # fmt: skip
    seal_and_sign()
    AuditEntry(tenant_id=tenant.id, event_type="agent.updated", actor_type="agent", actor_kind="agent",
               actor_id="x", created_at=now()).save()  # fmt: skip

    answer = client.get("/v1/audit-log/export?format=ocsf")
    lines = [json.loads(line) for line in answer.content.splitlines()]

    assert answer["Content-Type"] == "application/x-ndjson; charset=utf-8"
    assert [problem for line in lines for problem in problems(line)] == []
    assert {line["metadata"]["tenant_uid"] for line in lines} == {str(tenant.id)}
    assert lines[-1]["metadata"]["uid"] == str(made.id)
    assert len(lines) == AuditEntry.objects.for_tenant(tenant.id).count() - 1
    place = sealed_entry_of(made.id)
    assert place is not None
    assert lines[-1]["metadata"]["sequence"] == place.index
    assert exported(tenant.id, "ocsf", action="delegation.") == b""
