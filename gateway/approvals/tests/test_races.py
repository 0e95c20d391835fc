"""Who decides or uses an approval at the same moment, too late, or with what was not meant for it."""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from certificates.models import Certificate
from certificates.tests.factories import revoke_certificate, suspend_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.tests.nodes import node_environment
from compliance.tests.threads import THREADS, all_at_once, at_once, in_thread, somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from delegation.token_keys import keys
from gateway.approvals import services
from gateway.approvals.errors import ApprovalRefused, RefusedReason
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import DETAILS, KEY, decide, make_approval, make_approved, use
from gateway.tests.factories import make_permitted_agent
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

pytestmark = pytest.mark.usefixtures("committed")
ATTEMPTS = 5


@pytest.fixture
def tenant() -> Tenant:
    keys.bootstrap(actor=KEY, now=now())
    return make_tenant()


def outcomes(found: list[Any]) -> tuple[list[Approval], list[RefusedReason]]:
    """Those that won, and the reasons of those that were refused."""
    won = [one for one in found if isinstance(one, Approval)]
    refused = [one.reason for one in found if isinstance(one, ApprovalRefused)]
    assert len(won) + len(refused) == len(found), found
    return won, refused


def refused(call: Callable[[], Any]) -> RefusedReason:
    with pytest.raises(ApprovalRefused) as error:
        call()
    return error.value.reason


def entries(approval: Approval, action: str) -> int:
    found = AuditEntry.objects.filter(tenant_id=approval.tenant_id, event_type=action)
    return found.filter(metadata__approval_id=str(approval.id)).count()


@pytest.mark.parametrize("attempt", range(ATTEMPTS))
def test_of_two_deciders_one_decides(agent: Agent, attempt: int) -> None:
    approval = make_approval(agent)
    officers = [Actor.person(new_id()) for _ in range(THREADS)]

    won, lost = outcomes(
        all_at_once(
            [
                partial(decide, approval, approved=bool(place % 2), actor=officer)
                for place, officer in enumerate(officers)
            ]
        )
    )

    row = Approval.objects.get(id=approval.id)
    assert [(one.status, one.decided_by, one.receipt) for one in won] == [
        (row.status, row.decided_by, row.receipt)
    ]
    assert lost == [RefusedReason.ALREADY_DECIDED] * (THREADS - 1)
    assert entries(approval, "approval.decided") == 1


@pytest.mark.parametrize("attempt", range(ATTEMPTS))
def test_of_two_uses_one_succeeds(agent: Agent, attempt: int) -> None:
    approved = make_approved(agent)

    won, lost = outcomes(at_once(partial(use, approved)))

    assert [one.id for one in won] == [approved.id]
    assert lost == [RefusedReason.ALREADY_USED] * (THREADS - 1)
    assert entries(approved, "approval.used") == 1


@pytest.mark.parametrize("attempt", range(ATTEMPTS))
def test_the_same_act_asked_about_at_the_same_moment_is_one_question(agent: Agent, attempt: int) -> None:
    found = at_once(partial(make_approval, agent))

    assert len({one.id for one in found}) == 1
    assert Approval.objects.for_tenant(agent.tenant_id).count() == 1


@pytest.mark.parametrize("attempt", range(ATTEMPTS))
def test_at_the_end_a_sweep_or_a_decision_comes_first_never_both(agent: Agent, attempt: int) -> None:
    """The sweep's clock may be ahead of the web process's."""
    approval = make_approval(agent)
    ahead, behind = approval.expires_at, approval.expires_at - timedelta(seconds=1)

    _, found = all_at_once([partial(services.sweep, now=ahead), partial(decide, approval, now=behind)])

    row = Approval.objects.get(id=approval.id)
    if isinstance(found, ApprovalRefused):
        assert (row.status, row.decided_at, found.reason) == ("expired", None, RefusedReason.EXPIRED)
    else:
        # Decided first: approved, or swept with its decision on record; no use is left of it either way.
        assert row.decided_at is not None
        assert refused(partial(use, found, now=ahead)) is RefusedReason.EXPIRED


def test_a_decision_after_the_end_is_refused(agent: Agent) -> None:
    approval = make_approval(agent)

    assert refused(partial(decide, approval, now=approval.expires_at)) is RefusedReason.EXPIRED
    services.sweep(now=approval.expires_at)
    assert refused(partial(decide, approval)) is RefusedReason.EXPIRED


@pytest.mark.parametrize("stop", ["suspended", "revoked"])
def test_an_agent_that_is_stopped_meanwhile_uses_no_receipt(agent: Agent, stop: str) -> None:
    """Whoever uses it while the agent is being stopped waits for that, and is refused."""
    approved, begun = make_approved(agent), Event()

    def use_it() -> Any:
        begun.set()
        return use(approved)

    with ThreadPoolExecutor(1) as pool:
        with environments.atomic():
            if stop == "suspended":
                suspend_agent(agent)
            else:
                revoke_certificate(Certificate.objects.get(agent=agent))
            using = pool.submit(in_thread, use_it)
            begun.wait(10)
            assert eventually(somebody_waits_for_a_lock, seconds=20)

        assert outcomes([using.result()])[1] == [RefusedReason.AGENT_NOT_ACTIVE]
    assert Approval.objects.get(id=approved.id).status == "approved"


@pytest.mark.parametrize("attempt", range(ATTEMPTS))
def test_no_approval_is_given_after_the_agent_is_stopped(agent: Agent, attempt: int) -> None:
    approval = make_approval(agent)

    _, found = all_at_once([partial(suspend_agent, agent), partial(decide, approval)])

    if isinstance(found, ApprovalRefused):
        assert found.reason is RefusedReason.AGENT_NOT_ACTIVE
        assert Approval.objects.get(id=approval.id).status == "pending"
    else:
        assert refused(partial(use, found)) is RefusedReason.AGENT_NOT_ACTIVE


WRONG_ACTS: list[dict[str, Any]] = [
    {"action_name": "refund"},
    {"details": {}},
    {"details": {**DETAILS, "amount": 25_001}},
    {"details": {**DETAILS, "amount": "25000"}},
    {"details": {**DETAILS, "more": None}},
]


@pytest.mark.parametrize("wrong", WRONG_ACTS)
def test_a_receipt_is_for_its_act_only(agent: Agent, wrong: dict[str, Any]) -> None:
    approved = make_approved(agent)

    assert refused(partial(use, approved, **wrong)) is RefusedReason.WRONG_ACTION
    assert use(approved).status == "used"


def test_the_order_of_names_and_the_spelling_of_numbers_do_not_matter(agent: Agent) -> None:
    approved = make_approved(agent)
    same = {name: DETAILS[name] for name in reversed(DETAILS)} | {"amount": 25_000.0}

    assert use(approved, details=same).status == "used"


def test_a_receipt_is_for_its_agent_only(agent: Agent, tenant: Tenant) -> None:
    approved, colleague = make_approved(agent), make_permitted_agent(tenant)
    foreign = make_permitted_agent(make_tenant("Other"))

    assert refused(partial(use, approved, agent_id=colleague.id)) is RefusedReason.WRONG_AGENT
    assert (
        refused(partial(use, approved, agent_id=foreign.id, tenant_id=foreign.tenant_id))
        is RefusedReason.WRONG_AGENT
    )


def test_a_receipt_of_the_other_environment_is_refused(agent: Agent, tenant: Tenant) -> None:
    with environments.use(Environment.TEST):
        keys.bootstrap(actor=KEY, now=now())
        theirs = make_approved(make_permitted_agent(Tenant.objects.get(id=tenant.id)))

    assert refused(partial(use, theirs)) is RefusedReason.INVALID_ENVIRONMENT
    with environments.use(Environment.TEST):
        assert use(theirs).status == "used"


def test_a_receipt_that_another_process_used_stays_used_after_a_restart(agent: Agent) -> None:
    approved = make_approved(agent)
    call = {
        "receipt": approved.receipt,
        "tenant_id": str(approved.tenant_id),
        "agent_id": str(approved.agent_id),
        "action_name": approved.action_name,
        "details": approved.details,
    }

    def in_a_new_process() -> str:
        command = [sys.executable, str(Path(__file__).with_name("use_again.py"))]
        environment = node_environment() | {"PYTHONPATH": str(settings.BASE_DIR)}
        done = subprocess.run(
            command, input=json.dumps(call), env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert [in_a_new_process() for _ in range(2)] == ["used", "already_used"]
    assert refused(partial(use, approved)) is RefusedReason.ALREADY_USED


def test_a_receipt_without_its_row_is_not_approved(agent: Agent) -> None:
    """As after the databases were restored to a time before the decision."""
    approved = make_approved(agent)
    Approval.objects.filter(id=approved.id).delete()

    assert refused(partial(use, approved)) is RefusedReason.NOT_APPROVED


def test_another_tenant_decides_nothing(agent: Agent) -> None:
    approval, other = make_approval(agent), make_tenant("Other")

    found = in_thread(partial(_decided_by, other.id, approval))

    assert type(found).__name__ == "ApprovalNotFound"
    assert Approval.objects.get(id=approval.id).status == "pending"


def _decided_by(tenant_id: UUID, approval: Approval) -> Approval:
    officer = Actor.person(new_id())
    return services.decide(
        tenant_id=tenant_id, approval_id=approval.id, approved=True, actor=officer, now=now()
    )
