"""Stops, renewals and reviews over a stack of its own: how fast a stop is, and `kill -9` of their workers."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
import requests

from compliance.tests.stack import HEAL_SECONDS, Stack, processes_of
from compliance.tests.waiting import eventually, kill
from delegation.token_keys.signed_records import root_of

pytestmark = [pytest.mark.slow, pytest.mark.drill]

ROUTE = "stops"
MANY = 10_000
SOME = 2_000
KILLS = 10
FEW = 12
WORKER, OTHER_WORKER = "urgent", "-Q\0celery"
COPY = """
from agents.models import Agent
from certificates.models import Certificate
from compliance.core import environments
from delegation.stops.tests.factories import copy_agent
with environments.use(environments.Environment.LIVE):
    made = copy_agent(Agent.objects.get(id="{agent}"), {count})
    print(Certificate.objects.get(agent_id=made[-1].id).serial_number)
"""
COUNT = """
from collections import Counter
import json
from compliance.core import environments
from delegation.stops.models import StoppedAgent
from webhooks.models import Delivery
with environments.use(environments.Environment.LIVE):
    ids = set(map(str, StoppedAgent.objects.filter(stop_id="{stop}").values_list("agent_id", flat=True)))
    told = Counter()
    for one in Delivery.objects.select_related("message").filter(trigger="event"):
        body = json.loads(bytes(one.message.body))
        if body["data"].get("agent_id") in ids:
            told[one.message.event] += 1
    print(json.dumps(told))
"""


AUDITED = """
from collections import Counter
import json
from agents.models import Agent
from auditlog.models import AuditEntry
from compliance.core import environments
with environments.use(environments.Environment.LIVE):
    ids = [str(one.id) for one in Agent.objects.filter(model_hash__in={kinds})]
    told = AuditEntry.objects.filter(metadata__agent_id__in=ids)
    told = told.values_list("metadata__agent_id", "event_type")
    ends = AuditEntry.objects.filter(affected_id__in={others}).values_list("affected_id", "event_type")
    counts = Counter([*told, *ends])
    print(json.dumps([max(counts.values()), Counter(event_type for _, event_type in counts)]))
"""


def python(stack: Stack, code: str) -> str:
    """The last line that the code prints in the stack's own environment."""
    done = stack.run("manage", "shell", "--no-imports", "-c", code)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def crowd(stack: Stack, kind: str, count: int, **fields: Any) -> str:
    """Make so many agents of a model; the serial number of the last one."""
    named = {"name": "crowd", "model_hash": kind, "metadata": {"permitted_actions": ["read"]}, **fields}
    agent = stack.call("POST", "/v1/agents", named).json()["data"]["id"]
    assert stack.certify(agent).status_code == 201
    return python(stack, COPY.format(agent=agent, count=count))


def subscribe(stack: Stack) -> None:
    """Have one webhook, which nobody answers, of all that a stop tells."""
    for hook in stack.call("GET", "/v1/webhooks").json()["data"]:
        stack.call("DELETE", f"/v1/webhooks/{hook['id']}")
    hook = {"url": "http://127.0.0.1:9/", "events": ["agent.suspended", "certificate.revoked"]}
    assert stack.call("POST", "/v1/webhooks", hook).status_code == 201


def stop(stack: Stack, kind: str) -> str:
    answer = stack.call("POST", "/v1/stops", {"match": {"model_hash": kind}, "reason": "drill"})
    assert answer.status_code == 202, answer.text
    stop_id: str = answer.json()["data"]["id"]
    return stop_id


def shown(stack: Stack, stop_id: str) -> dict[str, Any]:
    found: dict[str, Any] = stack.call("GET", f"/v1/stops/{stop_id}").json()["data"]
    return found


def is_refused(stack: Stack, serial: str) -> bool:
    """Whether both the public verification and the gateway refuse the certificate."""
    found = stack.call("GET", f"/v1/verify/{serial}", key=None).json()["data"]
    headers = {
        "X-Service-Gateway-Key": stack.exports["LIVE_API_KEY"],
        "X-Service-Gateway-Route": ROUTE,
        "X-Service-Action": "read",
        "X-Service-Cert-Serial": serial,
    }
    url = f"{stack.exports['BASE_URL']}/v1/gateway/authorize"
    asked = requests.get(url, headers=headers, timeout=40)
    assert asked.status_code in (200, 403), asked.text
    return bool(found["status"] == "revoked" and asked.status_code == 403)


@pytest.fixture(scope="module", autouse=True)
def route(stack: Stack) -> None:
    """The gateway's route that serial numbers open."""
    answer = stack.call("POST", "/v1/gateway/routes", {"name": ROUTE, "credentials": ["serial"]})
    assert answer.status_code == 201, answer.text


def kill_until(
    stack: Stack,
    so_far: Callable[[], Any],
    is_done: Callable[[], bool],
    worker: str = WORKER,
    kills: int = KILLS,
) -> int:
    """Kill the worker at moments that differ, each after some progress, until all is done; how often."""
    killed = 0
    for number in range(kills):
        assert eventually(lambda: bool(processes_of(stack, worker)), seconds=HEAL_SECONDS)
        before = so_far()
        eventually(lambda: so_far() != before, seconds=HEAL_SECONDS)  # noqa: B023
        time.sleep(0.05 * number)
        if is_done():
            break
        kill(*processes_of(stack, worker))
        killed += 1
    assert eventually(is_done, seconds=2 * HEAL_SECONDS)
    return killed


def kill_until_stop(stack: Stack, stop_id: str, state: str) -> int:
    return kill_until(stack, lambda: shown(stack, stop_id), lambda: shown(stack, stop_id)["state"] == state)


def test_many_are_refused(stack: Stack) -> None:
    subscribe(stack)
    last = crowd(stack, "fast", MANY)

    began = time.monotonic()
    stop_id = stop(stack, "fast")
    assert eventually(lambda: shown(stack, stop_id)["stopped"] == MANY, seconds=HEAL_SECONDS)
    assert is_refused(stack, last)
    seconds = time.monotonic() - began
    assert eventually(lambda: shown(stack, stop_id)["state"] == "done", seconds=HEAL_SECONDS)

    sys.stderr.write(f"\n{MANY} agents: {seconds:.2f} s to the last refusal\n")


def test_killed_workers_leave_nothing_half_done(stack: Stack) -> None:
    subscribe(stack)
    last = crowd(stack, "killed", SOME)

    stop_id = stop(stack, "killed")
    killed = kill_until_stop(stack, stop_id, "done")

    found = shown(stack, stop_id)
    assert killed > 0
    assert (found["matched"], found["stopped"], found["failed"]) == (SOME, SOME, 0)
    assert is_refused(stack, last)
    told = json.loads(python(stack, COUNT.format(stop=stop_id)))
    assert told == {"agent.suspended": SOME, "certificate.revoked": SOME}
    answer = stack.call("GET", f"/v1/stops/{stop_id}/receipt").json()["data"]
    claims = jwt.decode(answer["receipt"], options={"verify_signature": False})
    assert claims["root"] == root_of(answer["lines"]).hex()
    assert {line["outcome"] for line in answer["lines"]} == {"stopped"}

    stack.call("POST", f"/v1/stops/{stop_id}/release", {"reason": "drill over"})
    assert kill_until_stop(stack, stop_id, "released") >= 0
    assert shown(stack, stop_id)["released"] == SOME
    assert not is_refused(stack, last)


def test_killed_workers_leave_renewals_and_reviews_whole(stack: Stack) -> None:
    def data(method: str, path: str, body: Any = None) -> Any:
        answer = stack.call(method, path, body)
        assert answer.ok, answer.text
        return answer.json()["data"]

    blueprint = data("POST", "/v1/blueprints", {"name": "kind", "permitted_actions": ["read", "pay"]})["id"]
    crowd(stack, "renewed", FEW, blueprint_id=blueprint, metadata=None)
    crowd(stack, "reviewed", FEW)
    data("PATCH", f"/v1/blueprints/{blueprint}", {"permitted_actions": ["read"]})
    asked = {"match": {"model_hash": "reviewed"}, "reviewer": "kim@example.com", "due_at": "2099-01-01"}
    review = f"/v1/access-reviews/{data('POST', '/v1/access-reviews', asked)['id']}"
    ids = [one["agent_id"] for one in data("GET", f"{review}/items")]

    begun = data("POST", f"/v1/blueprints/{blueprint}/renew", {"all_differing": True})
    renewal = f"/v1/blueprint-renewals/{begun['id']}"
    data("POST", f"{review}/items", {"agent_ids": ids, "decision": "reduce"})
    killed = kill_until(
        stack,
        lambda: (
            data("GET", renewal)["pending"],
            [one["applied_at"] for one in data("GET", f"{review}/items")],
        ),
        lambda: data("GET", renewal)["ended_at"] is not None and data("GET", review)["state"] == "done",
        OTHER_WORKER,
        3,
    )

    assert killed > 0
    assert (data("GET", renewal)["renewed"], data("GET", renewal)["failed"]) == (FEW, 0)
    record = data("GET", f"{review}/record")
    assert {(line["decision"], *line["removed_actions"]) for line in record["lines"]} == {("reduce", "read")}
    others = [blueprint, review.rpartition("/")[2]]
    most, by_type = json.loads(python(stack, AUDITED.format(kinds=["renewed", "reviewed"], others=others)))
    assert most == 1
    both = ("agent.updated", "certificate.renewed")
    assert {name: by_type[name] for name in both} == dict.fromkeys(both, 2 * FEW)
    assert by_type["access_review.decided"] == FEW
    ends = (
        "blueprint.renewal_started",
        "blueprint.renewal_done",
        "access_review.opened",
        "access_review.done",
    )
    assert [by_type[name] for name in ends] == [1] * len(ends)
