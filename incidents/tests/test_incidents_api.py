"""`/v1/incidents`: list, show, state what is known."""

from typing import Any

from auditlog.models import AuditEntry
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient
from incidents.tests.factories import make_closed_incident, make_incident
from tenancy.models import Tenant


def patch(client: ApiClient, incident: Any, **body: Any) -> Any:
    return client.patch(f"/v1/incidents/{incident.id}", body)


def test_incident_shows_its_clocks_and_timeline(client: ApiClient, tenant: Tenant) -> None:
    incident = make_incident(tenant)

    shown = client.get(f"/v1/incidents/{incident.id}").json()["data"]

    assert shown["reference"] == incident.reference
    assert {clock["kind"]: clock["state"] for clock in shown["clocks"]} == {
        "ai_act.report": "due",
        "dora.initial": "due",
        "dora.intermediate": "not_applicable",
        "dora.final": "not_applicable",
    }
    assert [entry["kind"] for entry in shown["timeline"]] == ["opened"]


def test_statement_moves_the_clocks(client: ApiClient, tenant: Tenant) -> None:
    incident = make_incident(tenant)
    moment = now().isoformat().replace("+00:00", "Z")

    answer = patch(client, incident, dora_class="major", classified_at=moment, owner="Ana", note="Called.")

    assert answer.status_code == 200
    shown = answer.json()["data"]
    assert shown["clocks"][1]["basis"] == "classification as major, as stated"
    assert [entry["kind"] for entry in shown["timeline"]] == ["opened", "changed", "note"]
    assert shown["timeline"][1]["actor_kind"] == "api_key"


def test_list_pages_newest_first_and_filters(client: ApiClient, tenant: Tenant) -> None:
    agent_id = new_id()
    closed, older, newer = (
        make_closed_incident(tenant),
        make_incident(tenant),
        make_incident(tenant, agent_id=agent_id),
    )

    first = client.get("/v1/incidents?limit=2").json()
    rest = client.get(f"/v1/incidents?before={first['next_cursor']}").json()

    assert [row["id"] for row in first["data"] + rest["data"]] == [
        str(row.id) for row in (newer, older, closed)
    ]
    for query, expected in (
        (f"agent_id={agent_id}", [newer]),
        ("state=closed", [closed]),
        ("severity=low", []),
    ):
        rows = client.get(f"/v1/incidents?{query}").json()["data"]
        assert [row["id"] for row in rows] == [str(one.id) for one in expected]


def test_time_without_an_offset_is_utc(client: ApiClient, tenant: Tenant) -> None:
    incident = make_incident(tenant)

    shown = patch(client, incident, aware_at="2026-11-20T10:00:00").json()["data"]

    assert shown["aware_at"] == "2026-11-20T10:00:00Z"
    occurred = client.post(
        "/v1/events",
        {
            "agentId": str(make_certified_agent(tenant).id),
            "actionType": "api_call",
            "occurredAt": "2026-11-20T10:00:00",
        },
    )
    assert occurred.json()["data"]["occurred_at"] == "2026-11-20T10:00:00Z"


def test_export_is_audited_as_the_keys(client: ApiClient, tenant: Tenant) -> None:
    incident = make_incident(tenant)

    client.get(f"/v1/incidents/{incident.id}/export")

    entry = AuditEntry.objects.for_tenant(tenant.id).of_type("incident.exported").get()
    assert (entry.actor_kind, entry.affected_id) == ("api_key", str(incident.id))
