"""Who answers for an agent is told of a strike, a stop and an ending, by mail and by webhook, while all runs.

The times go to stderr: nothing here fails because a machine is slow.
"""

import json
import sys
import time
from typing import Any

import pytest

from agents.tests.mail_servers import MailServer, serving_mail
from compliance.outbound.tests.receivers import Receiver, answer, receiving
from compliance.tests.stack import HEAL_SECONDS, Stack
from compliance.tests.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.drill]

OWNER = {"name": "Kim", "email": "kim@example.com"}
HIGH = {"actionType": "unauthorized_access_attempt", "details": {"target": "/etc"}}
EVENTS = ["agent.strike", "agent.suspended", "certificate.expiring"]
ENDING = """
import time
from datetime import timedelta
from certificates import services
from certificates.models import Certificate
from compliance.core import environments
from compliance.core.clock import now
with environments.use(environments.Environment.LIVE):
    moved = {{"issued_at": now() - timedelta(days=300), "expires_at": now() + timedelta(days=6)}}
    Certificate.objects.filter(agent_id="{agent}").update(**moved)
    print(time.time())
    services.announce_due(now=now())
"""


def told(server: MailServer, receiver: Receiver, subject: str, event: str) -> bool:
    """Whether both the owner's mail and the webhook's message are there."""
    subjects = [str(message["Subject"]) for to, message in list(server.taken) if to == [OWNER["email"]]]
    events = [json.loads(request.body)["event"] for request in list(receiver.received)]
    return any(subject in one for one in subjects) and event in events


def test_owner_is_told_of_a_strike_a_stop_and_an_ending(stack: Stack) -> None:
    def post(path: str, body: Any = None) -> Any:
        answered = stack.call("POST", path, body)
        assert answered.ok, answered.text
        return answered.json()["data"]

    def assert_told(subject: str, event: str, began: float) -> None:
        assert eventually(lambda: told(server, receiver, subject, event), seconds=HEAL_SECONDS), event
        sys.stderr.write(f"\n{event}: owner and webhook told after {time.time() - began:.2f} s\n")

    with serving_mail(stack.mail_port) as server, receiving(answer(200)) as receiver:
        hook = post("/v1/webhooks", {"url": receiver.url, "events": EVENTS})["id"]
        agent = post("/v1/agents", {"name": "owned", "model_hash": "h", "owner": OWNER})["id"]
        post(f"/v1/agents/{agent}/certify")

        for _ in range(2):
            began = time.time()
            post("/v1/events", {"agentId": agent, **HIGH})
        assert_told("one strike from a stop", "agent.strike", began)

        done = stack.run("manage", "shell", "--no-imports", "-c", ENDING.format(agent=agent))
        assert done.returncode == 0, done.stdout + done.stderr
        assert_told("renewed within 7 days", "certificate.expiring", float(done.stdout.splitlines()[-1]))

        began = time.time()
        post("/v1/stops", {"match": {"agent_ids": [agent]}, "reason": "drill"})
        assert_told("is suspended", "agent.suspended", began)
        stack.call("DELETE", f"/v1/webhooks/{hook}")
