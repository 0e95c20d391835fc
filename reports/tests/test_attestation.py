"""`GET /v1/agents/{id}/attestation`: what it says now and of the past, and how an outsider verifies it."""

import io
import json
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.core.management import call_command
from pypdf import PdfReader

from agents import services as agents
from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.disposal.erasing import erase
from auditlog.models import AuditEntry, LogKey
from auditlog.tests.factories import seal_and_sign
from auditlog.vocabulary import Actor
from certificates.models import Certificate
from certificates.tests.factories import (
    make_certificate,
    make_certified_agent,
    reinstate_agent,
    revoke_certificate,
    suspend_agent,
)
from compliance.core.clock import now
from compliance.core.encodings import b64_decode
from compliance.tests.client import ApiClient
from events.tests.factories import make_event, make_high_event, store_event
from incidents.tests.factories import make_incident
from reports.bundles.archive import unpack
from reports.management.commands.report_verify import findings
from reports.standing.page import render
from tenancy.models import Tenant

ACTOR = Actor.system("tests")
KIM = {"owner_name": "Kim Berg", "owner_email": "kim@example.com"}
LEE = {"owner_name": "Lee Sand", "owner_email": "lee@example.com"}


def attested(client: ApiClient, agent: Agent, at: datetime | None = None) -> dict[str, Any]:
    query = "" if at is None else f"?at={at.isoformat().replace('+00:00', 'Z')}"
    answer = client.get(f"/v1/agents/{agent.id}/attestation{query}")
    assert answer.status_code == 200, answer.json()
    found: dict[str, Any] = answer.json()["data"]["attestation"]
    return found


def change(agent: Agent, **fields: Any) -> None:
    agents.update(tenant_id=agent.tenant_id, agent_id=agent.id, changes=fields, actor=ACTOR, now=now())


def test_it_states_identity_certificate_scope_owner_and_risk(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant, metadata={"permitted_actions": ["read", "trade"]}, **KIM)
    certificate = Certificate.objects.get(agent=agent)
    event = make_high_event(agent)
    make_event(agent)
    incident = make_incident(tenant, agent_id=agent.id)

    found = attested(client, agent)

    assert found["agent"]["did"] == agent.did
    assert (found["agent"]["status"], found["agent"]["model_hash"]) == ("active", agent.model_hash)
    assert found["certificate"]["serial_number"] == certificate.serial_number
    assert (found["certificate"]["status"], found["certificate"]["revoked_at"]) == ("valid", None)
    assert found["scope"] == {"permitted_actions": ["read", "trade"], "stated_by": "certificate"}
    assert found["owner"] == {"name": "Kim Berg", "email": "kim@example.com"}
    assert found["backup_owner"] is None
    risk = found["risk"]
    assert (risk["events_by_band"]["high"], sum(risk["events_by_band"].values())) == (1, 2)
    assert [row["id"] for row in risk["high_risk_events"]] == [str(event.id)]
    assert risk["score"] == pytest.approx(event.risk_score, abs=0.01)
    assert risk["strikes"]["counting"] == 1
    assert [row["reference"] for row in found["incidents"]["newest"]] == [incident.reference]
    assert found["last_access_review"] is None
    assert found["gaps"] == []


def test_each_control_names_the_rows_it_rests_on(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    for _ in range(12):
        make_event(agent)
    suspend_agent(agent)

    found = {control["id"]: control for control in attested(client, agent)["controls"]}

    assert (found["aia-12-2-a"]["count"], len(found["aia-12-2-a"]["rows"])) == (12, 10)
    certificate = Certificate.objects.get(agent=agent)
    assert {"kind": "certificate", "id": str(certificate.id)} in found["aia-13"]["rows"]
    kinds = {AuditEntry.objects.get(id=row["id"]).event_type for row in found["aia-14"]["rows"]}
    assert kinds == {"agent.suspended", "certificate.held"}
    assert (found["aia-73"]["count"], found["aia-73"]["rows"]) == (0, [])


def test_a_past_moment_is_as_it_was(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant, metadata={"permitted_actions": ["read"]}, **KIM)
    registered = now()
    change(agent, metadata={"permitted_actions": ["read", "trade"]})
    make_certificate(agent)
    certified = now()
    change(agent, **LEE, metadata={"permitted_actions": ["read"]})
    suspend_agent(agent)
    held = now()
    reinstate_agent(agent)
    back = now()
    revoke_certificate(Certificate.objects.get(agent=agent))

    before, then, hold, after, today = (
        attested(client, agent, at) for at in (registered, certified, held, back, None)
    )

    assert [one["agent"]["status"] for one in (before, then, hold, after, today)] == [
        *("pending", "active", "suspended", "active", "active")
    ]
    states = [(one["certificate"] or {}).get("status") for one in (before, then, hold, after, today)]
    assert states == [None, "valid", "on_hold", "valid", "revoked"]
    assert abs(datetime.fromisoformat(hold["certificate"]["revoked_at"]) - held) < timedelta(minutes=1)
    assert before["scope"] == {"permitted_actions": None, "stated_by": "profile"}
    assert any("permitted actions" in gap for gap in before["gaps"])
    assert then["scope"]["permitted_actions"] == ["read", "trade"]
    assert today["scope"] == then["scope"]  # until the certificate is renewed
    assert before["owner"] == then["owner"] == {"name": "Kim Berg", "email": "kim@example.com"}
    assert hold["owner"] == today["owner"] == {"name": "Lee Sand", "email": "lee@example.com"}


def test_events_after_the_moment_do_not_count(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    make_event(agent)
    moment = now()
    make_high_event(agent)

    found = attested(client, agent, moment)

    assert found["risk"]["events_by_band"]["high"] == 0
    assert sum(found["risk"]["events_by_band"].values()) == 1


def test_what_was_erased_is_not_guessed(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant, **KIM)
    moment = now()
    change(agent, **LEE)
    suspend_agent(agent)
    later = now()
    reinstate_agent(agent)
    seal_and_sign()
    for kind in ("agent.updated", "agent.suspended"):
        entry = AuditEntry.objects.of_type(kind).about(agent.id).get()
        erase(entry_id=entry.id, reason="asked", actor=ACTOR, now=now())

    first, second = attested(client, agent, moment), attested(client, agent, later)

    assert first["owner"] is None
    assert "The records do not tell any more: owner at that time" in first["gaps"]
    assert second["agent"]["status"] is None
    assert "The records do not tell any more: status at that time" in second["gaps"]
    assert attested(client, agent)["owner"] == {"name": "Lee Sand", "email": "lee@example.com"}


def test_the_pdf_does_not_say_none_of_what_is_not_known(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant, metadata={"permitted_actions": ["read"]}, **KIM)
    moment = now()
    change(agent, **LEE, metadata={"permitted_actions": ["write"]}, model="gpt-5")
    seal_and_sign()
    entry = AuditEntry.objects.of_type("agent.updated").about(agent.id).get()
    erase(entry_id=entry.id, reason="asked", actor=ACTOR, now=now())
    document = attested(client, agent, moment)

    drawn = render(document, digest="0" * 64, fingerprint="1" * 64)

    told = PdfReader(io.BytesIO(drawn)).pages[0].extract_text()
    lost = ("model", "version", "model hash", "scope", "owner", "backup owner")
    assert told.count("not on record") >= len(lost)
    assert "none" not in told


def test_moments_that_it_cannot_tell_of(client: ApiClient, tenant: Tenant) -> None:
    path = f"/v1/agents/{make_agent(tenant).id}/attestation"

    future = client.get(f"{path}?at=2100-01-01T00:00:00Z")
    before = client.get(f"{path}/pdf?at=2020-01-01")

    assert (future.status_code, future.json()) == (400, {"error": "at must not lie in the future"})
    assert (before.status_code, before.json()) == (
        404,
        {"error": "The agent was not registered at that time"},
    )
    assert client.get(f"{path}?at=x").status_code == 400
    assert client.get(f"{path}?format=pdf").status_code == 400


def test_it_is_audited(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    found = attested(client, agent)

    entry = AuditEntry.objects.of_type("agent.attested").about(agent.id).get()
    assert entry.metadata is not None
    assert entry.metadata["attestation_id"] == found["report_id"]
    assert entry.metadata["sha256"] == sha256(rfc8785.dumps(found)).hexdigest()


def test_the_json_is_signed(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    data = client.get(f"/v1/agents/{agent.id}/attestation").json()["data"]

    files = {each["name"]: each["sha256"] for each in data["manifest"]["files"]}
    assert files["report.json"] == sha256(rfc8785.dumps(data["attestation"])).hexdigest()
    key = Ed25519PublicKey.from_public_bytes(bytes(LogKey.objects.get().public_key))
    key.verify(b64_decode(data["signature"]), rfc8785.dumps(data["manifest"]))


def test_a_bundle_passes_report_verify_and_a_changed_one_does_not(
    client: ApiClient, tenant: Tenant, tmp_path: Path
) -> None:
    agent = make_certified_agent(tenant)
    make_high_event(agent)
    seal_and_sign()
    answer = client.get(f"/v1/agents/{agent.id}/attestation/bundle")
    path = tmp_path / "attestation.zip"
    path.write_bytes(answer.content)

    call_command("report_verify", str(path))
    files = unpack(answer.content)
    trusted = [bytes(key.public_key) for key in LogKey.objects.all()]

    assert json.loads(files["manifest.json"])["audit_log_checkpoint"]
    assert len(files["evidence/high_risk_events.jsonl"].splitlines()) == 1
    changed = files | {"report.json": files["report.json"].replace(b"active", b"rested")}
    assert findings(files, trusted) == []
    assert findings(changed, trusted) == ["report.json is not what was signed"]


@pytest.mark.parametrize("is_long", [False, True])
def test_the_pdf_has_one_page_and_no_verdict(client: ApiClient, tenant: Tenant, is_long: bool) -> None:
    fields: dict[str, Any] = {}
    if is_long:
        fields = {
            **dict.fromkeys(("name", "model", "version", "owner_name", "backup_owner_name"), "W" * 255),
            "model_hash": "M" * 512,
            "owner_email": f"{'m' * 64}@{'w' * 60}.example.com",
            "backup_owner_email": f"{'m' * 64}@{'w' * 60}.example.com",
        }
    agent = make_agent(tenant, **fields)
    for score in (0.1, 0.9, 0.95):
        store_event(agent, score, now())
    document = attested(client, agent)
    if is_long:
        incident = {"reference": "INC-20261120-3C3C3C3C", "cause": "halted"}
        document["scope"]["permitted_actions"] = ["W" * 60] * 100
        document["incidents"] = {"count": 10**9, "newest": [incident] * 10}
        document["gaps"] = ["W W W W" * 20] * 10
        document["certificate"] = {
            "serial_number": "f" * 40,
            "status": "not_yet_valid",
            **dict.fromkeys(("issued_at", "expires_at"), "2026-11-20T09:00:00Z"),
        }
        for control in document["controls"]:
            control["rows"] = [{"kind": "audit_entry", "id": str(agent.id)}] * 10

    pages = PdfReader(io.BytesIO(render(document, digest="0" * 64, fingerprint="1" * 64))).pages

    assert len(pages) == 1
    text = pages[0].extract_text()
    assert "compliant" not in f"{text}{json.dumps(document)}".lower()
    served = client.get(f"/v1/agents/{agent.id}/attestation/pdf")
    assert (served["Content-Type"], len(PdfReader(io.BytesIO(served.content)).pages)) == (
        "application/pdf",
        1,
    )


def test_the_risk_is_that_of_thirty_days(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)
    Agent.objects.filter(id=agent.id).update(created_at=now() - timedelta(days=60))
    old = store_event(agent, 0.9, now() - timedelta(days=31))
    halved = store_event(agent, 0.9, now() - timedelta(days=7, hours=12))

    found = attested(client, agent)

    assert [row["id"] for row in found["risk"]["high_risk_events"]] == [str(halved.id)]
    assert found["risk"]["score"] == pytest.approx(halved.risk_score / 2, abs=0.001)
    past = attested(client, agent, now() - timedelta(days=30))
    assert [row["id"] for row in past["risk"]["high_risk_events"]] == [str(old.id)]
