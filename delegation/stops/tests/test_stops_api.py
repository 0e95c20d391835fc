"""`/v1/stops`: who is stopped, what is told, what is refused, and what a release lifts."""

import json
from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent, OwnerMail
from agents.tests.factories import make_agent, make_blueprint, make_retired_agent
from auditlog.models import AuditEntry
from certificates.issuing import issuance
from certificates.lists.publication import publish
from certificates.models import Certificate, RevocationList
from certificates.tests.factories import (
    make_certificate,
    make_certified_agent,
    reinstate_agent,
    revoke_certificate,
    stock_pool,
    suspend_agent,
)
from certificates.tests.test_overlap import renew, statuses
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from delegation.stops.models import KindStop
from delegation.stops.tests.factories import begin_stop, make_crowd, make_stop, outcomes_of, release_stop
from gateway.tests.factories import Gateway, make_permitted_agent, serial_of
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_key, make_tenant
from webhooks.models import Delivery, Message
from webhooks.tests.factories import make_webhook

PATH = "/v1/stops"
ALL = {"match": {"all": True}, "reason": "it leaks"}


@pytest.fixture(autouse=True)
def stocked() -> None:
    """Renewals find keys in the pool, and wait for none to be generated."""
    stock_pool(2)


def status_of(agent: Agent) -> tuple[str, str | None]:
    agent.refresh_from_db()
    certificate = Certificate.objects.latest_of(agent)
    return agent.status, certificate.revocation_code if certificate else None


def test_a_model_is_stopped_and_the_others_go_on(client: ApiClient, tenant: Tenant) -> None:
    agents = make_crowd(tenant, 3, model_hash="bad")
    other, stranger = make_certified_agent(tenant), make_certified_agent(make_tenant(), model_hash="bad")

    answer = client.post(PATH, {"match": {"model_hash": "bad"}, "reason": "it leaks"})

    shown = answer.json()["data"]
    assert (answer.status_code, shown["state"]) == (201, "done")
    assert [shown[name] for name in ("matched", "stopped", "skipped", "failed")] == [3, 3, 0, 0]
    assert (shown["reason_code"], shown["revoke"]) == ("certificateHold", False)
    assert [status_of(one) for one in agents] == [("suspended", "certificateHold")] * 3
    assert {status_of(other), status_of(stranger)} == {("active", "")}
    kept = client.get(f"{PATH}/{shown['id']}").json()["data"]
    assert shown == {**kept, "dry_run": False, "sample": []}
    assert client.get(PATH).json()["data"] == [kept]


def test_the_stopped_are_refused_at_verify_and_at_the_gateway(
    api: ApiClient, client: ApiClient, tenant: Tenant
) -> None:
    gateway, agent = Gateway(tenant), make_permitted_agent(tenant)
    serial = serial_of(agent)
    assert gateway.ask_serial(agent).status_code == 200

    client.post(PATH, ALL)

    assert api.get(f"/v1/verify/{serial}").json()["data"]["status"] == "revoked"
    assert gateway.ask(**{"X-Service-Cert-Serial": serial}).status_code == 403


def test_all_agents_of_an_owner_are_stopped_and_the_owner_is_told_once(
    client: ApiClient, tenant: Tenant, settings: Any
) -> None:
    settings.EMAIL_HOST = "mail.example"
    owned = make_crowd(tenant, 3, owner_name="Kim Berg", owner_email="kim.berg@example.com")
    other = make_certified_agent(tenant)

    answer = client.post(PATH, {"match": {"owner": "Kim.Berg@example.com"}, "reason": "left"})

    shown = answer.json()["data"]
    assert (shown["stopped"], shown["match"]) == (3, {"owner": None})
    assert [status_of(one)[0] for one in (*owned, other)] == ["suspended"] * 3 + ["active"]
    assert KindStop.objects.get().match == {"owner": None}
    (entry,) = AuditEntry.objects.about(shown["id"]).of_type("stop.started")  # can be erased
    assert (entry.metadata or {})["match"] == {"owner": "Kim.Berg@example.com"}
    assert OwnerMail.objects.filter(tenant=tenant).count() == 1


def test_all_agents_of_a_blueprint_are_stopped(client: ApiClient, tenant: Tenant) -> None:
    blueprint, other = make_blueprint(tenant), make_certified_agent(tenant)
    kind = make_crowd(tenant, 2, blueprint_id=blueprint.id)

    shown = client.post(PATH, {"match": {"blueprint_id": str(blueprint.id)}, "reason": "r"}).json()["data"]

    assert (shown["stopped"], shown["match"]) == (2, {"blueprint_id": str(blueprint.id)})
    assert [status_of(one)[0] for one in (*kind, other)] == ["suspended", "suspended", "active"]
    foreign = make_blueprint(make_tenant())
    for name in (foreign.id, other.id):
        assert client.post(PATH, {"match": {"blueprint_id": str(name)}, "reason": "r"}).status_code == 404


def test_stop_ends_an_overlap(client: ApiClient, api: ApiClient, tenant: Tenant) -> None:
    old = make_certificate(make_agent(tenant), at=now() - timedelta(hours=1))
    new = renew(api.as_key(make_key(tenant)), old)

    shown = client.post(PATH, ALL).json()["data"]

    assert statuses(api, old, new) == ["revoked", "revoked"]
    client.post(f"{PATH}/{shown['id']}/release", {"reason": "harmless"})
    assert statuses(api, old, new) == ["revoked", "active"]


def test_a_misspelt_dry_run_stops_nobody(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)

    answer = client.post(PATH, {**ALL, "dryrun": True})

    assert (answer.status_code, answer.json()["error"]) == (400, "Unknown fields: dryrun")
    assert status_of(agent)[0] == "active"


def test_revoke_is_for_good_and_ends_holds_too(client: ApiClient, tenant: Tenant) -> None:
    agent, held = make_certified_agent(tenant), make_certified_agent(tenant)
    suspend_agent(held)

    answer = client.post(PATH, {**ALL, "revoke": True, "reason_code": "keyCompromise"})

    shown = answer.json()["data"]
    assert (shown["stopped"], shown["skipped"]) == (2, 0)
    assert status_of(agent) == status_of(held) == ("suspended", "keyCompromise")
    assert client.post(f"{PATH}/{shown['id']}/release", {"reason": "no"}).status_code == 422


def test_reason_code_of_a_hold_is_kept_in_the_stop_alone(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)

    shown = client.post(PATH, {**ALL, "reason_code": "keyCompromise"}).json()["data"]

    assert (shown["reason_code"], shown["revoke"]) == ("keyCompromise", False)
    assert status_of(agent) == ("suspended", "certificateHold")
    (entry,) = AuditEntry.objects.about(shown["id"]).of_type("stop.started")
    assert (entry.metadata or {})["reason_code"] == "keyCompromise"
    assert client.post(f"{PATH}/{shown['id']}/release", {"reason": "over"}).status_code == 200
    assert status_of(agent)[0] == "active"


@pytest.mark.parametrize("is_held", [False, True], ids=["active", "held"])
def test_revoke_gives_both_of_an_overlap_its_reason(client: ApiClient, tenant: Tenant, is_held: bool) -> None:
    old = make_certificate(make_agent(tenant))
    named: dict[str, Any] = {"tenant_id": tenant.id, "certificate_id": old.id, "actor": ACTOR, "now": now()}
    issuance.renew(**named, overlap=timedelta(hours=1))
    if is_held:
        suspend_agent(old.agent)

    client.post(PATH, {**ALL, "revoke": True, "reason_code": "keyCompromise"})

    codes = Certificate.objects.filter(agent=old.agent).values_list("revocation_code", flat=True)
    assert list(codes) == ["keyCompromise", "keyCompromise"]
    (entry,) = AuditEntry.objects.about(old.id).of_type("certificate.revoked")
    assert entry.actor_id == KindStop.objects.get().started_by


def test_the_stopped_and_the_retired_are_skipped(client: ApiClient, tenant: Tenant) -> None:
    pending, retired = make_agent(tenant), make_retired_agent(tenant)
    held = suspend_agent(make_certified_agent(tenant))

    shown = client.post(PATH, ALL).json()["data"]

    assert (shown["matched"], shown["stopped"], shown["skipped"]) == (3, 1, 2)
    assert outcomes_of(KindStop.objects.get()) == {
        pending.id: "stopped",
        retired.id: "skipped",
        held.id: "skipped",
    }
    assert status_of(pending) == ("suspended", None)


def test_a_dry_run_only_counts(client: ApiClient, tenant: Tenant) -> None:
    agents = make_crowd(tenant, 12)

    answer = client.post(PATH, {**ALL, "dry_run": True})

    shown = answer.json()["data"]
    assert (answer.status_code, shown["dry_run"], shown["matched"], len(shown["sample"])) == (
        200,
        True,
        12,
        10,
    )
    assert status_of(agents[0]) == ("active", "")
    assert not KindStop.objects.exists()


def test_agents_are_named_by_id(client: ApiClient, tenant: Tenant) -> None:
    agent, other = make_agent(tenant), make_agent(tenant)
    stranger = make_agent(make_tenant())

    named = {"match": {"agent_ids": [str(agent.id), str(agent.id)]}, "reason": "odd"}
    foreign = {"match": {"agent_ids": [str(agent.id), str(stranger.id)]}, "reason": "odd"}

    assert client.post(PATH, foreign).status_code == 404
    assert client.post(PATH, named).json()["data"]["stopped"] == 1
    assert status_of(other)[0] == "pending"


def test_what_is_no_stop_is_400(client: ApiClient) -> None:
    table: list[dict[str, Any]] = [
        {"match": {}},
        {"match": {"all": False}},
        {"match": {"all": True, "model_hash": "h"}},
        {"reason_code": "certificateHold", "revoke": True},
        {"reason_code": "removeFromCRL", "revoke": True},
    ]
    for wrong in table:
        assert client.post(PATH, {**ALL, **wrong}).status_code == 400


def test_what_is_told_is_what_single_stops_tell(client: ApiClient, tenant: Tenant) -> None:
    make_webhook(tenant, events=["certificate.revoked", "agent.suspended"])
    single = make_certified_agent(tenant, name="one")
    suspend_agent(single)
    crowd = make_crowd(tenant, 3, name="two", model_hash="bad")

    client.post(PATH, {"match": {"model_hash": "bad"}, "reason": "under review"})

    messages = [(one.event, json.loads(bytes(one.body))["data"]) for one in Message.objects.order_by("id")]
    assert Delivery.objects.count() == len(messages) == 8
    for event in ("agent.suspended", "certificate.revoked"):
        first, *others = [data for name, data in messages if name == event]
        assert {one["agent_id"] for one in others} == {str(one.id) for one in crowd}
        assert all(one.keys() == first.keys() for one in others)
    entries = AuditEntry.objects.for_tenant(tenant.id)
    for action in ("agent.suspended", "certificate.held"):
        alone = entries.filter(event_type=action, metadata__agent_id=str(single.id)).get()
        for one in entries.filter(event_type=action).exclude(id=alone.id):
            assert (one.metadata or {}).keys() - {"request_id", "trace_id"} == (alone.metadata or {}).keys()
    assert entries.filter(event_type="agent.suspended").count() == 4
    for action in ("stop.started", "stop.done"):
        assert entries.get(event_type=action).actor_kind == "api_key"


def test_one_list_shows_all(tenant: Tenant) -> None:
    make_crowd(tenant, 5)
    authority = Certificate.objects.first().authority  # type: ignore[union-attr]
    publish(authority_id=authority.id, actor=ACTOR, now=now())
    before = RevocationList.objects.latest_of(authority)

    make_stop(tenant)
    publish(authority_id=authority.id, actor=ACTOR, now=now())

    after = RevocationList.objects.latest_of(authority)
    assert (after.number, after.entry_count) == (before.number + 1, before.entry_count + 5)


def test_a_release_lifts_the_holds_of_its_stop_and_no_other(client: ApiClient, tenant: Tenant) -> None:
    free, revoked, again, retired, certless = *make_crowd(tenant, 4), make_agent(tenant)
    held = suspend_agent(make_certified_agent(tenant))
    shown = client.post(PATH, ALL).json()["data"]
    revoke_certificate(Certificate.objects.get(agent=revoked))
    reinstate_agent(again)
    suspend_agent(again)
    client.post(f"/v1/agents/{retired.id}/retire", {"reason": "x"})
    Agent.objects.filter(id=retired.id).update(status="retired")

    answer = client.post(f"{PATH}/{shown['id']}/release", {"reason": "fixed"})

    released = answer.json()["data"]
    assert (answer.status_code, released["state"], released["released"]) == (200, "released", 2)
    assert status_of(free) == ("active", "")
    assert status_of(certless) == ("pending", None)
    assert status_of(revoked) == ("suspended", "keyCompromise")
    assert status_of(again) == status_of(held) == ("suspended", "certificateHold")
    assert status_of(retired)[0] == "retired"
    entries = AuditEntry.objects.for_tenant(tenant.id)
    told = entries.filter(event_type="agent.reinstated", affected_id__in=[str(free.id), str(certless.id)])
    assert told.count() == 2
    assert entries.filter(event_type="stop.released").count() == 1


def test_another_stop_keeps_what_it_wants_stopped(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    first, second = make_stop(tenant), make_stop(tenant, match={"model_hash": agent.model_hash})
    assert (first.stopped, second.skipped) == (1, 1)

    assert release_stop(first).released == 0
    assert status_of(agent)[0] == "suspended"
    assert release_stop(second).released == 0
    assert release_stop(first).released == 1
    assert status_of(agent) == ("active", "")


def test_an_ended_certificate_stays_on_hold_and_its_agent_is_pending(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    stop = make_stop(tenant)
    Certificate.objects.update(expires_at=now())

    release_stop(stop)

    assert status_of(agent) == ("pending", "certificateHold")


def test_a_running_stop_has_no_receipt_and_is_not_released(client: ApiClient, tenant: Tenant) -> None:
    make_agent(tenant)
    stop = begin_stop(tenant)

    assert client.get(f"{PATH}/{stop.id}").json()["data"]["state"] == "running"
    assert client.get(f"{PATH}/{stop.id}/receipt").status_code == 425
    assert client.post(f"{PATH}/{stop.id}/release", {"reason": "x"}).status_code == 422


def test_many_are_left_to_the_task(client: ApiClient, tenant: Tenant) -> None:
    make_crowd(tenant, 101)

    answer = client.post(PATH, ALL)

    assert (answer.status_code, answer.json()["data"]["state"]) == (202, "running")


def test_a_repeated_request_is_one_stop(client: ApiClient, tenant: Tenant) -> None:
    make_agent(tenant)

    first, second = (client.post(PATH, ALL, **{"Idempotency-Key": "once"}) for _ in range(2))

    assert first.json() == second.json()
    assert KindStop.objects.count() == 1
