"""`POST /v1/agents/{id}/delegation` with a DPoP proof, and what a token then is bound to."""

from typing import Any

from django.conf import settings as configured
from pytest_django.fixtures import Settings

from agents.models import Agent
from auditlog.models import AuditEntry
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from delegation import services
from delegation.errors import ParentKeyNotProven
from delegation.tests.factories import CHAIN, JKT
from delegation.tests.holders import Holder

HOLDER = Holder()
LONGER = [*CHAIN, {"sub": "quote-service", "type": "service"}]


def path_of(agent: Agent) -> str:
    return f"/v1/agents/{agent.id}/delegation"


def proof_for(agent: Agent, holder: Holder = HOLDER, **how: Any) -> str:
    return holder.proof("POST", f"{configured.BASE_URL}{path_of(agent)}", **how)


def issue(
    client: ApiClient, agent: Agent, proof: str | None = None, key: str | None = None, **body: Any
) -> Any:
    headers = {"DPoP": proof, "Idempotency_Key": key}
    sent = {name: value for name, value in headers.items() if value is not None}
    return client.post(path_of(agent), {"chain": CHAIN, **body}, **sent)


def bound_to(token: str) -> str | None:
    found = services.verify(token=token, now=now()).delegation
    assert found is not None
    return found.bound_to


def test_token_is_bound_to_the_proven_key(client: ApiClient, agent: Agent) -> None:
    answer = issue(client, agent, proof_for(agent))

    assert answer.status_code == 200
    assert answer.json()["data"]["bound_to"] == HOLDER.jkt
    assert bound_to(answer.json()["data"]["token"]) == HOLDER.jkt
    entry = AuditEntry.objects.get(event_type="delegation.issued", affected_id=agent.id)
    assert (entry.metadata or {})["bound_to"] == HOLDER.jkt


def test_token_is_bound_to_the_named_key_with_or_without_a_proof(client: ApiClient, agent: Agent) -> None:
    named = issue(client, agent, dpop_jkt=JKT).json()["data"]
    both = issue(client, agent, proof_for(agent), dpop_jkt=JKT).json()["data"]

    assert (named["bound_to"], both["bound_to"]) == (JKT, JKT)


def test_bound_token_is_handed_on_by_its_holder_alone(client: ApiClient, agent: Agent) -> None:
    parent = issue(client, agent, proof_for(agent)).json()["data"]["token"]
    handed = {"chain": LONGER, "parent_token": parent}

    without = issue(client, agent, **handed)
    other = issue(client, agent, proof_for(agent, Holder()), **handed)
    named = issue(client, agent, dpop_jkt=HOLDER.jkt, **handed)
    own = issue(client, agent, proof_for(agent), **handed)
    on = issue(client, agent, proof_for(agent), dpop_jkt=JKT, **handed)

    for refused in (without, other, named):
        assert (refused.status_code, refused.json()["error"]) == (422, ParentKeyNotProven.message)
    assert own.json()["data"]["bound_to"] == HOLDER.jkt
    assert on.json()["data"]["bound_to"] == JKT


def test_proof_is_refused_in_the_envelope(client: ApiClient, agent: Agent) -> None:
    used = proof_for(agent)
    issue(client, agent, used)
    url = f"{configured.BASE_URL}{path_of(agent)}"
    wrong = {
        used: "the proof was used before",
        "nonsense": "the proof is not one compact JWS",
        f"{proof_for(agent)}, {proof_for(agent)}": "the proof is not one compact JWS",
        HOLDER.proof("GET", url): "htm is not the method of this request",
        HOLDER.proof("POST", url.replace("127.0.0.1", "localhost")): "htu is not the URI of this request",
        HOLDER.proof("POST", f"{configured.BASE_URL}/v1/agents"): "htu is not the URI of this request",
    }

    for proof, reason in wrong.items():
        answer = issue(client, agent, proof)

        assert (answer.status_code, answer.json()) == (400, {"error": f"invalid_dpop_proof: {reason}"})
    assert AuditEntry.objects.filter(event_type="delegation.issued").count() == 1


def test_empty_header_is_a_proof_too(client: ApiClient, agent: Agent) -> None:
    assert issue(client, agent, "").status_code == 400


def test_refused_key_uses_no_proof_up(api: ApiClient, client: ApiClient, agent: Agent) -> None:
    proof = proof_for(agent)

    assert issue(api.as_key("live_nobody"), agent, proof).status_code == 401
    assert issue(client, agent, proof).status_code == 200


def test_nonce_is_asked_for_by_setting(client: ApiClient, agent: Agent, settings: Settings) -> None:
    settings.DPOP_NONCE_REQUIRED = True

    asked = issue(client, agent, proof_for(agent))
    again = issue(client, agent, proof_for(agent, nonce=asked.headers["DPoP-Nonce"]))

    assert asked.status_code == 400
    assert asked.json()["error"].startswith("use_dpop_nonce: ")
    assert again.status_code == 200
    assert issue(client, agent).status_code == 200


def test_without_redis_a_proof_is_answered_503_and_a_bearer_token_issued(
    client: ApiClient, agent: Agent, redis_is_down: None
) -> None:
    refused, bearer = issue(client, agent, proof_for(agent)), issue(client, agent)

    assert (refused.status_code, bearer.status_code) == (503, 200)
    assert "Retry-After" in refused.headers


def test_repeated_request_needs_a_new_proof_and_gets_the_same_token(client: ApiClient, agent: Agent) -> None:
    used = proof_for(agent)
    first = issue(client, agent, used, key="k")

    verbatim = issue(client, agent, used, key="k")
    anew = issue(client, agent, proof_for(agent), key="k")

    assert verbatim.json() == {"error": "invalid_dpop_proof: the proof was used before"}
    assert anew.json() == first.json()
    assert anew.headers["Idempotent-Replayed"] == "true"


def test_answer_is_repeated_for_the_same_key_of_the_holder_alone(client: ApiClient, agent: Agent) -> None:
    issue(client, agent, proof_for(agent), key="k")

    other, bearer = issue(client, agent, proof_for(agent, Holder()), key="k"), issue(client, agent, key="k")

    assert (other.status_code, bearer.status_code) == (409, 409)
