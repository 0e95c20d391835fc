"""Certificates of agents, and the authorities that a verifier trusts."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agentid import Client
from agentid.client.generated.results import Certificate
from agentid.verify import TrustedAuthorities, VerifiedCertificate, verify_certificate
from certificates.tests.factories import make_authorities
from compliance.core import environments
from compliance.core.environments import Environment
from tenancy.tests.factories import make_key, make_tenant
from tests.served import Service


def issue(client: Client, name: str = "signer", **more: Any) -> Certificate:
    """A certificate of a new agent, which may read and write."""
    scope = {"permitted_actions": ["read", "write"]}
    agent = client.agents.register(name=name, model_hash="sha256:0", model="m", metadata=scope, **more)
    return client.agents.certify(agent.id)


def certified(
    client: Client, trusted: TrustedAuthorities, name: str = "signer", **more: Any
) -> VerifiedCertificate:
    pem = issue(client, name, **more).certificate_pem
    return verify_certificate(pem, trusted=trusted, revocation=None, now=datetime.now(UTC))


@pytest.fixture(scope="package")
def known(running_service: Service, django_db_blocker: Any) -> tuple[Certificate, TrustedAuthorities]:
    with django_db_blocker.unblock(), environments.use(Environment.LIVE):
        make_authorities()
        key = make_key(make_tenant())
    with Client(running_service.address, key) as client:
        listed = client.authorities.list()
        roots = "".join(each.pem for each in listed.certificates if each.role == "root")
        return issue(client), TrustedAuthorities.of_pem(roots, listed.chain_pem)


@pytest.fixture
def certificate(service: Service, known: tuple[Certificate, TrustedAuthorities]) -> Certificate:
    """The same for all tests: none of them revokes it."""
    return known[0]


@pytest.fixture
def own(client: Client) -> Certificate:
    """A test's own, of the client's tenant."""
    return issue(client)


@pytest.fixture
def trusted(service: Service, known: tuple[Certificate, TrustedAuthorities]) -> TrustedAuthorities:
    return known[1]
