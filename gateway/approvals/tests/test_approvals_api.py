"""`/v1/approvals`: asking, listing, and waiting for the answer."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from compliance.tests.threads import in_thread
from gateway.approvals import services
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import DETAILS, HOUR, decide, make_approval, make_approved, use
from gateway.tests.factories import make_permitted_agent
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant

PATH = "/v1/approvals"


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant, ["decisions:evaluate"]))


def ask(client: ApiClient, agent: Agent, **fields: Any) -> Any:
    return client.post(PATH, {"agent_id": str(agent.id), "action": "pay", "details": DETAILS, **fields})


def test_an_approval_is_opened_by_hand(client: ApiClient, agent: Agent) -> None:
    answer = ask(client, agent, ttl_seconds=60, action_type="transaction_initiated")

    assert answer.status_code == 201
    shown = answer.json()["data"]
    assert (shown["status"], shown["action"], shown["details"]) == ("pending", "pay", DETAILS)
    assert (shown["receipt"], shown["risk_score"], shown["decision_id"]) == (None, None, None)
    row = Approval.objects.get(id=shown["id"])
    assert (row.expires_at - row.requested_at).total_seconds() == 60


def test_an_agent_that_is_stopped_or_anothers_is_not_asked_about(client: ApiClient, agent: Agent) -> None:
    foreign = make_agent(make_tenant("Other"))
    Agent.objects.filter(id=agent.id).update(status="suspended")

    assert ask(client, agent).status_code == 422
    assert ask(client, foreign).status_code == 404


def test_the_answer_has_the_receipt_once_approved_and_until_it_is_used(
    client: ApiClient, agent: Agent
) -> None:
    approval = make_approval(agent)
    path = f"{PATH}/{approval.id}"
    assert client.get(path).json()["data"]["receipt"] is None

    approved = decide(approval)
    shown = client.get(path).json()["data"]
    assert (shown["status"], shown["receipt"]) == ("approved", approved.receipt)

    use(approved)
    shown = client.get(path).json()["data"]
    assert (shown["status"], shown["receipt"]) == ("used", None)


def test_an_expired_approval_shows_no_receipt(client: ApiClient, agent: Agent) -> None:
    long_ago = now() - 2 * HOUR
    approved = decide(make_approval(agent, now=long_ago), now=long_ago)

    shown = client.get(f"{PATH}/{approved.id}").json()["data"]

    assert (shown["status"], shown["receipt"]) == ("expired", None)


def test_a_list_is_filtered_and_goes_page_by_page(client: ApiClient, agent: Agent, tenant: Tenant) -> None:
    other = make_permitted_agent(tenant)
    approved, waits = make_approved(agent), make_approval(other)

    def listed(query: str) -> list[str]:
        return [row["id"] for row in client.get(f"{PATH}?{query}").json()["data"]]

    assert listed("") == [str(waits.id), str(approved.id)]
    assert listed("status=pending") == [str(waits.id)]
    assert listed(f"agent_id={agent.id}") == [str(approved.id)]
    first = client.get(f"{PATH}?limit=1").json()
    assert first["has_next_page"]
    assert "receipt" not in first["data"][0]
    assert listed(f"before={first['next_cursor']}") == [str(approved.id)]
    assert client.get(f"{PATH}?status=x").status_code == 400


def test_no_key_decides(client: ApiClient, agent: Agent) -> None:
    approval = make_approval(agent)

    assert client.patch(f"{PATH}/{approval.id}", {"status": "approved"}).status_code == 405
    assert client.post(f"{PATH}/{approval.id}", {"status": "approved"}).status_code == 405


def test_a_wait_ends_in_time(client: ApiClient, agent: Agent) -> None:
    began = time.monotonic()

    answer = client.get(f"{PATH}/{make_approval(agent).id}?wait=1")

    assert (answer.status_code, answer.json()["data"]["status"]) == (200, "pending")
    assert time.monotonic() - began >= 1


def test_a_wait_beyond_the_tenants_share_is_told_when_to_come_again(client: ApiClient, agent: Agent) -> None:
    path = f"{PATH}/{make_approval(agent).id}"

    with services.SLOTS.take(agent.tenant_id):
        refused, at_once = client.get(f"{path}?wait=30"), client.get(path)

    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert at_once.status_code == 200


@pytest.mark.usefixtures("committed")
def test_the_decision_arrives_at_who_waits_within_a_second(client: ApiClient, agent: Agent) -> None:
    approval = make_approval(agent)
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(in_thread, lambda: client.get(f"{PATH}/{approval.id}?wait=30").json()["data"])
        time.sleep(0.5)
        assert not waits.done()
        decide(approval)
        decided = time.monotonic()

        shown = waits.result(10)

    assert (shown["status"], bool(shown["receipt"])) == ("approved", True)
    assert time.monotonic() - decided < 1
