"""An agent's certificate, and the authorities that a verifier trusts."""

import pytest

from agentid import Client
from agentid.client.generated.results import Certificate
from agentid.verify import TrustedAuthorities


@pytest.fixture
def certificate(client: Client) -> Certificate:
    agent = client.agents.register(
        name="signer", model_hash="sha256:0", model="m", metadata={"permitted_actions": ["read", "write"]}
    )
    return client.agents.certify(agent.id)


@pytest.fixture
def trusted(client: Client) -> TrustedAuthorities:
    listed = client.authorities.list()
    roots = "".join(each.pem for each in listed.certificates if each.role == "root")
    return TrustedAuthorities.of_pem(roots, listed.chain_pem)
