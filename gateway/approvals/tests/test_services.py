"""Opening, deciding, using and ending an approval, one step after the other."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from certificates.tests.factories import suspend_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.errors import Invalid
from gateway.approvals import services
from gateway.approvals.errors import ApprovalRefused, NotDecidedByKey, RefusedReason, TooManyPending
from gateway.approvals.models import KEPT, Approval
from gateway.approvals.tests.factories import HOUR, KEY, OFFICER, decide, make_approval, make_approved, use
from webhooks.models import Message
from webhooks.openapi import EXAMPLE_DATA
from webhooks.tests.factories import make_webhook


def audited(approval: Approval) -> list[tuple[str, str]]:
    """The actions that the log has of an approval, with the status each names."""
    entries = AuditEntry.objects.filter(tenant_id=approval.tenant_id, metadata__approval_id=str(approval.id))
    return [(one.event_type, (one.metadata or {})["status"]) for one in entries.order_by("id")]


def refused(call: Any, *args: Any, **kwargs: Any) -> RefusedReason:
    with pytest.raises(ApprovalRefused) as error:
        call(*args, **kwargs)
    return error.value.reason


def test_an_act_is_asked_about_approved_and_done_once(agent: Agent) -> None:
    approval = make_approval(agent)
    assert approval.status == "pending"
    assert approval.receipt is None

    approved = decide(approval, note="Agreed with the supplier")
    assert (approved.status, approved.decided_by, approved.decided_by_kind, approved.note) == (
        "approved",
        OFFICER.id,
        "person",
        "Agreed with the supplier",
    )

    assert use(approved).status == "used"
    assert refused(use, approved) is RefusedReason.ALREADY_USED
    assert audited(approval) == [
        ("approval.requested", "pending"),
        ("approval.decided", "approved"),
        ("approval.used", "used"),
    ]


def test_a_denied_act_has_no_receipt(agent: Agent) -> None:
    denied = decide(make_approval(agent), approved=False)

    assert (denied.status, denied.receipt, denied.jti) == ("denied", None, None)
    assert refused(decide, denied) is RefusedReason.ALREADY_DECIDED


@pytest.mark.parametrize("actor", [KEY, Actor.system("tests"), Actor.agent("tests")])
def test_only_a_person_decides(agent: Agent, actor: Actor) -> None:
    with pytest.raises(NotDecidedByKey):
        decide(make_approval(agent), actor=actor)


def test_the_database_refuses_a_decision_that_no_person_made(agent: Agent) -> None:
    approval = make_approval(agent)

    with pytest.raises(IntegrityError), environments.atomic():
        Approval.objects.filter(id=approval.id).update(
            status="denied", decided_at=now(), decided_by=KEY.id, decided_by_kind="api_key"
        )


def test_the_same_act_is_asked_about_once_at_a_time(agent: Agent) -> None:
    first = make_approval(agent)

    assert make_approval(agent).id == first.id
    assert make_approval(agent, details={"amount": 1}).id != first.id
    later = make_approval(agent, now=first.expires_at)
    assert later.id != first.id
    assert audited(first)[-1] == ("approval.expired", "expired")


def test_the_same_act_as_another_type_of_action_is_a_question_of_its_own(agent: Agent) -> None:
    asked = [make_approval(agent, action_type=one) for one in ("api_call", "transaction_initiated") * 2]

    assert [one.id for one in asked[:2]] == [one.id for one in asked[2:]]
    assert Approval.objects.pending(now()).count() == 2
    assert make_approval(agent, action_type=None).id in {one.id for one in asked}


def test_a_question_at_a_higher_risk_replaces_the_one_that_waits(agent: Agent) -> None:
    first = make_approval(agent, risk_band="low")

    second = make_approval(agent, risk_band="high", actor=Actor.api_key("riskier"))

    assert make_approval(agent, risk_band="low").id == second.id
    first.refresh_from_db()
    assert (first.status, first.note) == ("expired", "Replaced: the act was asked about at a higher risk.")
    entry = AuditEntry.objects.of_type("approval.expired").get(tenant_id=agent.tenant_id)
    assert (entry.actor_kind, entry.actor_id) == ("api_key", "api_key:riskier")
    assert str(entry.description).endswith("replaced")


def test_an_agent_can_not_bury_the_inbox(agent: Agent) -> None:
    first = make_approval(agent)

    with pytest.raises(TooManyPending):
        make_approval(agent, details={}, most_pending=1)

    decide(first)
    make_approval(agent, details={}, most_pending=1)


def test_details_without_a_canonical_form_are_refused(agent: Agent) -> None:
    with pytest.raises(Invalid):
        make_approval(agent, details={"amount": 2**53 + 1})


def test_a_receipt_is_void_after_the_end(agent: Agent) -> None:
    approved = make_approved(agent)

    assert refused(use, approved, now=approved.expires_at) is RefusedReason.EXPIRED


def test_a_stopped_agent_gets_and_uses_no_approval(agent: Agent) -> None:
    waiting, approved = make_approval(agent, details={}), make_approved(agent)
    suspend_agent(agent)

    assert refused(use, approved) is RefusedReason.AGENT_NOT_ACTIVE
    assert refused(decide, waiting) is RefusedReason.AGENT_NOT_ACTIVE
    assert refused(make_approval, agent, details={"other": 1}) is RefusedReason.AGENT_NOT_ACTIVE
    assert decide(waiting, approved=False).status == "denied"


def test_the_sweep_marks_what_has_expired_and_forgets_it_later(agent: Agent) -> None:
    waiting, approved = make_approval(agent, details={}), make_approved(agent)
    used = use(make_approved(agent, details={"n": 1}))
    end = approved.expires_at + HOUR

    assert services.sweep(now=end) == 2
    assert services.sweep(now=end) == 0
    found = dict(Approval.objects.for_tenant(agent.tenant_id).values_list("id", "status"))
    assert found == {waiting.id: "expired", approved.id: "expired", used.id: "used"}
    assert audited(waiting)[-1] == audited(approved)[-1] == ("approval.expired", "expired")

    services.sweep(now=end + KEPT)
    assert not Approval.objects.for_tenant(agent.tenant_id).exists()


@pytest.mark.parametrize("status", ["pending", "approved", "expired"])
def test_the_status_of_a_list_is_the_one_that_counts(agent: Agent, status: str) -> None:
    make_approval(agent, details={})
    make_approved(agent)
    own, later = Approval.objects.for_tenant(agent.tenant_id), now() + timedelta(hours=2)

    assert own.with_status(status, now()).count() == (0 if status == "expired" else 1)
    assert own.with_status(status, later).count() == (2 if status == "expired" else 0)


def test_webhooks_are_told_of_the_question_and_of_the_answer(agent: Agent) -> None:
    make_webhook(agent.tenant, events=["approval.requested", "approval.decided"])

    make_approved(agent)

    sent = Message.objects.filter(tenant=agent.tenant, event__startswith="approval.").order_by("id")
    assert [one.event for one in sent] == ["approval.requested", "approval.decided"]
    for message in sent:
        assert set(json.loads(bytes(message.body))["data"]) == set(EXAMPLE_DATA[message.event])
