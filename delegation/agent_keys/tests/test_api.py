"""`/v1/agents/{id}/keys`: a key is registered with a proof by itself, listed, and revoked for good."""

from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.tests.factories import make_certified_agent
from compliance.core.encodings import b64url_encode
from compliance.tests.client import ApiClient
from delegation.agent_keys import services
from delegation.agent_keys.models import AgentKey
from delegation.agent_keys.services import MOST_KEYS
from delegation.agent_keys.tests.signers import ACTOR, register as register_key, retire_agent
from delegation.jose.holder_keys import SMALL_ORDER
from delegation.tests.holders import Holder
from tenancy.models import Tenant


def path_of(agent: Agent) -> str:
    return f"/v1/agents/{agent.id}/keys"


def new_holder() -> Holder:
    return Holder(Ed25519PrivateKey.generate())


def proof_for(agent: Agent, holder: Holder, **changed: Any) -> str:
    return holder.proof(**{"method": "POST", "uri": f"{settings.BASE_URL}{path_of(agent)}", **changed})


def register(
    client: ApiClient, agent: Agent, holder: Holder, *, proof: str | None = None, **more: Any
) -> Any:
    sent = {"DPoP": proof_for(agent, holder) if proof is None else proof}
    return client.post(path_of(agent), {"jwk": more.pop("jwk", holder.jwk)}, **sent)


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_agent(tenant)


def test_key_is_registered_listed_and_revoked(client: ApiClient, agent: Agent) -> None:
    holder = new_holder()

    made = register(client, agent, holder)

    assert made.status_code == 201, made.content
    key = made.json()["data"]
    assert (key["thumbprint"], key["jwk"], key["revoked_at"]) == (holder.jkt, holder.jwk, None)
    assert client.get(path_of(agent)).json()["data"] == [key]
    ended = client.post(f"{path_of(agent)}/{key['id']}/revoke", {"reason": "lost"}).json()["data"]
    again = client.post(f"{path_of(agent)}/{key['id']}/revoke", {"reason": "lost"}).json()["data"]
    assert ended["revoked_at"] is not None
    assert again == ended
    told = [one.event_type for one in AuditEntry.objects.for_tenant(agent.tenant_id).order_by("id")]
    assert told[-2:] == ["agent_key.registered", "agent_key.revoked"]


def test_revocation_stands_where_another_hosts_clock_is_ahead(agent: Agent) -> None:
    row = register_key(agent, new_holder())

    ended = services.revoke(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        key_id=row.id,
        reason="lost",
        actor=ACTOR,
        now=row.created_at - timedelta(seconds=1),
    )

    assert ended.revoked_at == row.created_at


@pytest.mark.parametrize("sign", [0, 2**255])
@pytest.mark.parametrize("y", [*SMALL_ORDER, 2**255 - 19, 2**255 - 18])
def test_key_by_which_anybody_can_sign_proves_nothing(
    client: ApiClient, agent: Agent, y: int, sign: int
) -> None:
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": b64url_encode((y + sign).to_bytes(32, "little"))}
    signed, _, _ = proof_for(agent, new_holder(), header={"jwk": jwk}).rpartition(".")
    forged = b64url_encode((1).to_bytes(32, "little") + bytes(32))

    answer = register(client, agent, new_holder(), proof=f"{signed}.{forged}", jwk=jwk)

    assert answer.status_code == 400
    assert "jwk is not a public key" in answer.json()["error"]


def test_revoked_key_is_never_registered_again(client: ApiClient, agent: Agent) -> None:
    holder = new_holder()
    key = register(client, agent, holder).json()["data"]
    client.post(f"{path_of(agent)}/{key['id']}/revoke", {"reason": "lost"})

    assert register(client, agent, holder).status_code == 409


def test_key_is_of_one_agent_only(client: ApiClient, agent: Agent, tenant: Tenant) -> None:
    holder, other = new_holder(), make_agent(tenant)
    register(client, agent, holder)

    assert register(client, other, holder).status_code == 409


def test_proof_is_needed_by_the_key_itself(client: ApiClient, agent: Agent) -> None:
    holder = new_holder()

    missing = client.post(path_of(agent), {"jwk": holder.jwk})
    foreign = register(client, agent, holder, proof=proof_for(agent, new_holder()))
    elsewhere = register(client, agent, holder, proof=proof_for(make_agent(agent.tenant), holder))

    assert (missing.status_code, foreign.status_code, elsewhere.status_code) == (422, 422, 400)
    assert not AgentKey.objects.exists()


def test_anything_but_a_public_ed25519_key_is_refused(client: ApiClient, agent: Agent) -> None:
    for changed in [
        {"d": "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU"},
        {"kty": "EC"},
        {"crv": "P-256"},
        {"crv": "X25519"},
        {"x": "a"},
        {"x": "a" * 44},
    ]:
        holder = new_holder()

        assert register(client, agent, holder, jwk={**holder.jwk, **changed}).status_code == 400


def test_agent_has_few_keys_in_force(client: ApiClient, agent: Agent) -> None:
    keys = [register(client, agent, new_holder()).json()["data"] for _ in range(MOST_KEYS)]

    assert register(client, agent, new_holder()).status_code == 409
    client.post(f"{path_of(agent)}/{keys[0]['id']}/revoke", {"reason": "old"})
    assert register(client, agent, new_holder()).status_code == 201


def test_retired_agent_gets_no_key(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    retire_agent(agent)

    assert register(client, agent, new_holder()).status_code == 422


def test_key_of_another_agent_is_not_found(client: ApiClient, agent: Agent, tenant: Tenant) -> None:
    key, other = register(client, agent, new_holder()).json()["data"], make_agent(tenant)

    answer = client.post(f"{path_of(other)}/{key['id']}/revoke", {"reason": "x"})

    assert (answer.status_code, answer.json()["error"]) == (404, "Agent key not found")
