"""The guide's Python verifies a real receipt against the real JWKS over HTTP, and its receipt is taken."""

import json
import re
from pathlib import Path
from typing import Any

import jwt
import pytest
from django.conf import settings
from pytest_httpserver import HTTPServer

from agents.models import Agent
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from delegation.tests.factories import make_token
from gateway.access.tests.factories import decided, make_policy
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import DETAILS, HOUR, decide, make_approval, make_approved
from tenancy.tests.factories import make_key

GUIDE = Path(settings.BASE_DIR) / "docs" / "approvals.md"


@pytest.fixture
def approved(agent: Agent) -> Approval:
    return make_approved(agent)


@pytest.fixture
def verify(api: ApiClient, approved: Approval, httpserver: HTTPServer) -> Any:
    """The guide's function, its service played with the answers of the real one."""
    body = api.get("/.well-known/jwks.json").json()
    httpserver.expect_request("/.well-known/jwks.json").respond_with_json(body)
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {"BASE_URL": httpserver.url_for("").rstrip("/"), "ISSUER": settings.TOKEN_ISSUER}
    exec(code[1], names)  # noqa: S102  (the guide is ours)
    return names["verify"]


def test_the_guides_code_verifies_a_receipt_offline(verify: Any, approved: Approval) -> None:
    claims = verify(approved.receipt, str(approved.agent_id), "pay", DETAILS)

    assert claims["approval_id"] == str(approved.id)


def test_the_guides_code_refuses_what_was_not_approved(verify: Any, approved: Approval, agent: Agent) -> None:
    receipt, agent_id = approved.receipt, str(approved.agent_id)
    long_ago = now() - 2 * HOUR
    expired = decide(make_approval(agent, details={}, now=long_ago), now=long_ago).receipt
    for wrong in (
        (receipt, str(approved.id), "pay", DETAILS),
        (receipt, agent_id, "refund", DETAILS),
        (receipt, agent_id, "pay", {}),
        (expired, agent_id, "pay", {}),
        (make_token(agent).token, agent_id, "pay", DETAILS),
    ):
        with pytest.raises(jwt.PyJWTError):
            verify(*wrong)


def test_the_guides_receipt_is_good_for_the_act_of_the_other_guide(agent: Agent) -> None:
    agent_id = str(agent.id)
    asked, evaluated = (
        json.loads(
            re.findall(r"-d '(\{.*?\})'\n", page.read_text(), re.DOTALL)[0].replace("'$AGENT_ID'", agent_id)
        )
        for page in (GUIDE, GUIDE.with_name("authorization.md"))
    )
    make_policy(agent.tenant, always_ask=["pay"])
    client = ApiClient(make_key(agent.tenant, ["decisions:evaluate"]))

    opened = client.post("/v1/approvals", asked).json()["data"]
    evaluated["context"]["approval"] = decide(Approval.objects.get(id=opened["id"])).receipt

    assert decided(client, evaluated) == (True, "allow", "approved")
