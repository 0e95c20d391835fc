"""`POST /access/v1/evaluation`: every outcome, and what it leaves behind."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from certificates.tests.factories import (
    make_certified_agent,
    make_past_end,
    revoke_certificate,
    suspend_agent,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from delegation import services as delegation
from events.models import BehaviorEvent
from events.risk import state_cache
from events.tests.factories import make_event
from gateway.access.tests.factories import ONE, RECORD, UNUSUAL, ask, decided, make_policy
from gateway.approvals.models import Approval
from gateway.tests.factories import make_permitted_agent, serial_of, token_of
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant


def entries(tenant: Tenant, action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.for_tenant(tenant.id).of_type(action))


def test_permitted_act_is_allowed(asker: ApiClient, agent: Agent) -> None:
    answer = asker.post(ONE, ask(agent))

    assert answer.status_code == 200
    found = answer.json()
    assert set(found) == {"decision", "context"}
    assert found["decision"] is True
    context = found["context"]
    assert set(context) == {"outcome", "decision_id", "reasons", "risk_score", "risk_band"}
    assert (context["outcome"], context["risk_band"]) == ("allow", "low")
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.parametrize("kind", ["uuid", "upper", "did", "certificate", "colons"])
def test_subject_is_named_by_id_did_or_certificate(asker: ApiClient, agent: Agent, kind: str) -> None:
    serial = serial_of(agent)
    subject = {
        "uuid": {"type": "agent", "id": str(agent.id)},
        "upper": {"type": "agent", "id": str(agent.id).upper()},
        "did": {"type": "agent", "id": agent.did},
        "certificate": {"type": "certificate", "id": serial},
        "colons": {"type": "certificate", "id": ":".join(serial[at : at + 2] for at in range(0, 40, 2))},
    }[kind]

    assert decided(asker, ask(agent, subject=subject))[0] is True


def test_score_is_the_one_that_the_event_gets(asker: ApiClient, agent: Agent) -> None:
    for _ in range(30):
        make_event(agent, details={"action": "read", "resource": "a/1"})
    details = {"action": "read", "resource": "elsewhere/9", "host": "unheard-of.example"}

    context = asker.post(ONE, ask(agent, context={"details": details})).json()["context"]
    event = make_event(agent, details=details)

    assert context["risk_score"] == pytest.approx(event.risk_score, abs=0.002)
    assert [reason["name"] for reason in context["reasons"]] == [reason.name for reason in event.reasons]


def test_nothing_is_learned_and_nothing_is_a_strike(asker: ApiClient, agent: Agent) -> None:
    make_event(agent, details={"action": "read"})
    agent.refresh_from_db()
    before = state_cache.load([str(agent.id)])[str(agent.id)]
    violent = {"action_type": "unauthorized_access_attempt", "details": {"action": "root"}}

    for _ in range(4):
        assert decided(asker, ask(agent, context=violent))[:2] == (False, "deny")

    after = state_cache.load([str(agent.id)])[str(agent.id)]
    assert (after.packed, after.tag) == (before.packed, before.tag)
    assert BehaviorEvent.objects.filter(agent_id=agent.id).count() == 1
    now_stored = Agent.objects.get(id=agent.id)
    assert (now_stored.status, now_stored.last_high_risk_at) == ("active", None)
    assert now_stored.risk_score == agent.risk_score


def test_agent_without_events_has_no_state_after_it(asker: ApiClient, agent: Agent) -> None:
    decided(asker, ask(agent))

    assert not state_cache.load([str(agent.id)])[str(agent.id)].packed


def make_pending(tenant: Tenant) -> Agent:
    agent = make_permitted_agent(tenant)
    Agent.objects.filter(id=agent.id).update(status="pending")
    return agent


def test_action_outside_the_scope_is_denied(asker: ApiClient, agent: Agent) -> None:
    assert decided(asker, ask(agent, "delete")) == (False, "deny", "scope_violation")


def test_agent_that_declares_no_scope_is_denied(asker: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)

    assert decided(asker, ask(agent)) == (False, "deny", "scope_undeclared")


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda agent: revoke_certificate(agent.certificates.get()), "certificate_revoked"),
        (lambda agent: make_past_end(agent.certificates.get()), "certificate_expired"),
        (suspend_agent, "agent_suspended"),
    ],
)
@pytest.mark.parametrize("kind", ["agent", "certificate"])
def test_stopped_subject_is_denied(asker: ApiClient, agent: Agent, end: Any, reason: str, kind: str) -> None:
    subject = {"type": kind, "id": str(agent.id) if kind == "agent" else serial_of(agent)}
    end(agent)

    assert decided(asker, ask(agent, subject=subject)) == (False, "deny", reason)


def test_pending_agent_is_denied(asker: ApiClient, tenant: Tenant) -> None:
    assert decided(asker, ask(make_pending(tenant))) == (False, "deny", "agent_not_active")


LIMITS = {
    "max_single_trade_usd": 1_000,
    "daily_limit_usd": 5_000,
    "permitted_instruments": ["AAPL"],
    "permitted_venues": ["NYSE"],
    "leverage_permitted": False,
}


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        ({"amount_usd": 4_000}, "over_single_trade_limit"),
        ({"amount_usd": 10, "instrument": "TSLA"}, "instrument_not_permitted"),
        ({"amount_usd": 10, "venue": "OTC"}, "venue_not_permitted"),
        ({"amount_usd": 10, "leverage": 3}, "leverage_not_permitted"),
    ],
)
def test_financial_scope_is_a_limit_that_no_policy_widens(
    asker: ApiClient, tenant: Tenant, details: dict[str, Any], reason: str
) -> None:
    agent = make_permitted_agent(tenant, financial_scope=LIMITS)
    make_policy(tenant, ask_from="medium", always_ask=["pay"])
    context = {"action_type": "transaction_initiated", "details": {"action": "pay", **details}}

    assert decided(asker, ask(agent, "pay", context=context)) == (False, "deny", reason)


def test_daily_limit_counts_what_was_done_and_not_what_was_asked(asker: ApiClient, tenant: Tenant) -> None:
    agent = make_permitted_agent(tenant, financial_scope={**LIMITS, "max_single_trade_usd": 5_000})
    trade = {"action": "pay", "amount_usd": 3_000, "instrument": "AAPL", "venue": "NYSE"}
    body = ask(agent, "pay", context={"action_type": "transaction_initiated", "details": trade})

    asked = [asker.post(ONE, body).json()["context"]["reasons"] for _ in range(3)]
    make_event(agent, "transaction_initiated", details=trade)

    assert not any(reason["name"] == "over_daily_limit" for reasons in asked for reason in reasons)
    assert decided(asker, body) == (False, "deny", "over_daily_limit")


def test_high_risk_is_denied_where_nobody_is_asked(asker: ApiClient, agent: Agent) -> None:
    violent = {"action_type": "unauthorized_access_attempt"}

    assert decided(asker, ask(agent, context=violent)) == (False, "deny", "risk_high")


def test_medium_risk_is_allowed_where_nobody_is_asked(asker: ApiClient, agent: Agent) -> None:
    context = asker.post(ONE, ask(agent, "pay", context=UNUSUAL)).json()["context"]

    assert (context["outcome"], context["risk_band"]) == ("allow", "medium")


def test_token_of_the_agent_is_checked(asker: ApiClient, agent: Agent, tenant: Tenant) -> None:
    token = token_of(agent)
    other = token_of(make_permitted_agent(tenant))
    with_token: dict[str, Any] = {"context": {"token": token}}

    assert decided(asker, ask(agent, **with_token))[0] is True
    assert decided(asker, ask(agent, "pay", **with_token)) == (False, "deny", "token_insufficient_scope")
    assert decided(asker, ask(agent, context={"token": other})) == (False, "deny", "token_wrong_agent")
    assert decided(asker, ask(agent, context={"token": "x.y.z"})) == (False, "deny", "token_malformed")


def test_revoked_token_is_denied(asker: ApiClient, agent: Agent, tenant: Tenant) -> None:
    token = token_of(agent)
    delegation.revoke_token(tenant_id=tenant.id, token=token, actor=Actor.system("tests"), now=now())

    assert decided(asker, ask(agent, context={"token": token})) == (False, "deny", "token_revoked")


def test_unknown_foreign_and_other_environments_subjects_are_denied_alike(
    asker: ApiClient, agent: Agent
) -> None:
    foreign = make_permitted_agent(make_tenant("Rival"))
    with environments.use(Environment.TEST):
        sandbox = make_permitted_agent(make_tenant("Sandbox"))
        sandbox_serial = serial_of(sandbox)
    subjects = [
        ("agent", str(uuid4())), ("agent", "no-uuid"), ("agent", str(foreign.id)), ("agent", foreign.did),
        ("agent", str(sandbox.id)), ("agent", sandbox.did), ("user", "alice@acmecorp.com"),
        ("certificate", "f" * 40), ("certificate", "zz"), ("certificate", serial_of(foreign)),
        ("certificate", sandbox_serial), ("agent", "did:service:live:x"),
    ]  # fmt: skip

    answers = [asker.post(ONE, ask(agent, subject={"type": kind, "id": name})) for kind, name in subjects]

    for answer in answers:
        found = answer.json()
        assert found["context"].pop("decision_id")
        assert answer.status_code == 200
        assert found == {
            "decision": False,
            "context": {
                "outcome": "deny",
                "reasons": [{"name": "subject_unknown", "text": "The subject is unknown"}],
                "risk_score": None,
                "risk_band": None,
            },
        }


def test_test_key_decides_about_the_sandboxs_agents(tenant: Tenant) -> None:
    with environments.use(Environment.TEST):
        agent = make_permitted_agent(make_tenant("Sandbox"))
        key = make_key(agent.tenant, ["decisions:evaluate"])

    client = ApiClient(key)
    assert decided(client, ask(agent))[0] is True
    live = make_permitted_agent(tenant)
    assert decided(client, ask(live)) == (False, "deny", "subject_unknown")


def test_denials_are_in_the_audit_log_and_allows_are_not(
    asker: ApiClient, agent: Agent, tenant: Tenant
) -> None:
    asker.post(ONE, ask(agent))
    answer = asker.post(ONE, ask(agent, "delete"), **{"X-Request-ID": "asked-1"})
    denied = answer.json()["context"]["decision_id"]
    unknown = asker.post(ONE, ask(agent, subject={"type": "agent", "id": "x"})).json()["context"][
        "decision_id"
    ]

    found = {(one.metadata or {})["decision_id"]: one for one in entries(tenant, "decision.denied")}
    assert found.keys() == {denied, unknown}
    told = found[denied].metadata or {}
    assert (told["agent_id"], told["action"], told["resource"]) == (
        str(agent.id),
        "delete",
        "record:record-1",
    )
    assert (told["reasons"], told["request_id"]) == (["scope_violation"], "asked-1")
    assert (found[denied].affected_id, found[unknown].affected_id) == (str(agent.id), unknown)


def test_asked_act_opens_one_approval_for_the_same_act(
    asker: ApiClient, agent: Agent, tenant: Tenant
) -> None:
    make_policy(tenant, always_ask=["pay"], ttl_seconds=120)
    body = ask(agent, "pay", context={"details": {"amount": 5}})

    first, second = (asker.post(ONE, body).json() for _ in range(2))
    other = asker.post(ONE, {**body, "resource": {"type": "record", "id": "record-2"}}).json()

    assert (first["decision"], first["context"]["outcome"]) == (False, "ask")
    assert first["context"]["approval"]["status"] == "pending"
    assert second["context"]["approval"]["id"] == first["context"]["approval"]["id"]
    assert second["context"]["decision_id"] == first["context"]["decision_id"]
    assert other["context"]["approval"]["id"] != first["context"]["approval"]["id"]
    approval = Approval.objects.get(id=first["context"]["approval"]["id"])
    assert approval.details == {"amount": 5, "resource": RECORD}
    assert str(approval.decision_id) == first["context"]["decision_id"]
    assert approval.expires_at - approval.requested_at == timedelta(seconds=120)
    asked = entries(tenant, "decision.asked")
    assert len(asked) == 2
    assert str(approval.id) in {(one.metadata or {})["approval_id"] for one in asked}


def test_most_specific_policy_counts(asker: ApiClient, agent: Agent, tenant: Tenant) -> None:
    other = make_permitted_agent(tenant)
    make_policy(tenant, ask_from="medium", always_ask=["read"])
    make_policy(tenant, f"agent:{other.id}")

    assert decided(asker, ask(agent))[1] == "ask"
    assert decided(asker, ask(other))[1] == "allow"


@pytest.mark.parametrize(("ask_from", "outcome"), [("never", "allow"), ("medium", "ask"), ("high", "allow")])
def test_band_decides_whether_a_person_is_asked(
    asker: ApiClient, agent: Agent, tenant: Tenant, ask_from: str, outcome: str
) -> None:
    make_policy(tenant, ask_from=ask_from)

    assert decided(asker, ask(agent, "pay", context=UNUSUAL))[1] == outcome
    assert decided(asker, ask(agent))[1] == "allow"


def test_too_many_waiting_acts_are_denied(asker: ApiClient, agent: Agent, tenant: Tenant) -> None:
    make_policy(tenant, always_ask=["pay"])
    bodies = [ask(agent, "pay", resource={"type": "record", "id": str(number)}) for number in range(21)]

    found = [decided(asker, body) for body in bodies]

    assert [outcome for _, outcome, _ in found] == ["ask"] * 20 + ["deny"]
    assert found[-1][2] == "too_many_pending"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"action": {"name": "read", "properties": {"x": "x" * 70_000}}}, "action"),
        ({"context": {"action_type": "teleport"}}, "action"),
        ({"context": {"details": {"x": "x" * 70_000}}}, "context.details"),
        ({"context": {"approval": "x" * 20_000}}, "context.approval"),
    ],
)
def test_malformed_evaluation_is_a_400(
    asker: ApiClient, agent: Agent, changed: dict[str, Any], told: str
) -> None:
    answer = asker.post(ONE, {**ask(agent), **changed})

    assert answer.status_code == 400, answer.content
    assert told in answer.json()["error"]


def test_another_media_type_is_a_400(asker: ApiClient, agent: Agent) -> None:
    answer = asker.raw("POST", ONE, b"subject=x", "application/x-www-form-urlencoded")

    assert (answer.status_code, answer.json()["error"]) == (400, "Content-Type must be application/json")


def test_null_members_count_as_left_out(asker: ApiClient, agent: Agent) -> None:
    absent = {"action_type": None, "details": None, "token": None, "approval": None}

    assert decided(asker, ask(agent, context=None))[0] is True
    assert decided(asker, ask(agent, context=absent))[0] is True


def test_unknown_members_are_ignored(asker: ApiClient, agent: Agent) -> None:
    subject = {"type": "agent", "id": str(agent.id), "properties": {"department": "Sales"}, "x": 1}
    more: dict[str, Any] = {
        "foo": "bar",
        "futureField": {"nested": True},
        "context": {"time": "1985-10-26T01:22-07:00"},
    }

    assert decided(asker, ask(agent, subject=subject, **more))[0] is True


def test_request_id_comes_back(asker: ApiClient, agent: Agent) -> None:
    name = "bfe9eb29-ab87-4ca3-be83-a1d5d8305716"

    assert asker.post(ONE, ask(agent), **{"X-Request-ID": name})["X-Request-ID"] == name
    assert asker.post(ONE, {}, **{"X-Request-ID": name})["X-Request-ID"] == name
