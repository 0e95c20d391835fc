"""A client of the OAuth endpoints, as a test calls them."""

import base64
from typing import Any
from urllib.parse import quote_plus, urlencode

from django.test import Client

from agents.models import Agent
from delegation.oauth.exchange import ACCESS_TOKEN, GRANT_TYPE, ID_TOKEN, agent_type
from tenancy import keys
from tenancy.models import ApiKey

FORM = "application/x-www-form-urlencoded"


def id_of(secret: str) -> str:
    """The client id of an API key of the current environment."""
    return str(ApiKey.objects.get(digest=keys.digest(secret)).id)


def basic(client_id: str, secret: str) -> str:
    both = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(both.encode()).decode()}"


def send(
    body: dict[str, Any] | bytes,
    *,
    key: str | None = None,
    path: str = "/oauth/token",
    content_type: str = FORM,
    **headers: str,
) -> Any:
    """POST a form; `key` as a bearer. Lists are repeated parameters, None leaves one out."""
    if isinstance(body, dict):
        body = urlencode({k: v for k, v in body.items() if v is not None}, doseq=True).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if key is not None:
        sent["Authorization"] = f"Bearer {key}"
    client = Client(raise_request_exception=False)
    return client.generic("POST", path, body, content_type, headers=sent)


def with_id_token(token: str, agent: Agent, **changed: Any) -> dict[str, Any]:
    """A request to exchange a human's ID token for a delegation to an agent."""
    return {
        "grant_type": GRANT_TYPE,
        "subject_token": token,
        "subject_token_type": ID_TOKEN,
        "actor_token": agent.did,
        "actor_token_type": agent_type(),
        **changed,
    }


def with_delegation(token: str, agent: Agent, **changed: Any) -> dict[str, Any]:
    """A request to hand a delegation token on to an agent."""
    return with_id_token(token, agent, **{"subject_token_type": ACCESS_TOKEN, **changed})


def refusal(answer: Any) -> tuple[int, str, str]:
    """Status, code and the description up to its second colon; fails for an answer of another form."""
    found = answer.json()
    assert set(found) == {"error", "error_description"}, found
    assert (answer["Cache-Control"], answer["Pragma"]) == ("no-store", "no-cache")
    return answer.status_code, found["error"], found["error_description"]
