"""The directory of a tenant's keys: whose keys are in it, and the signature of the answer."""

import hashlib
import json
from base64 import b64encode
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver, algorithms

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.tests.factories import (
    make_certified_agent,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from delegation.agent_keys import services
from delegation.agent_keys.tests.signers import ACTOR, ENDED, Signer, register
from delegation.jose.jws import public_key
from delegation.tests.factories import make_token_key
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

MEDIA_TYPE = "application/http-message-signatures-directory+json"


def asked(tenant: Tenant, query: str = "") -> Any:
    return ApiClient().get(f"/v1/key-directories/{tenant.id}{query}")


def listed(tenant: Tenant, query: str = "") -> list[str]:
    answer = asked(tenant, query)
    assert (answer.status_code, answer["Content-Type"]) == (200, MEDIA_TYPE)
    return [key["kid"] for key in json.loads(answer.content)["keys"]]


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_certified_agent(tenant)


@pytest.fixture
def signer(agent: Agent) -> Signer:
    found = Signer()
    register(agent, found.holder)
    return found


def test_keys_are_listed_by_thumbprint(tenant: Tenant, signer: Signer) -> None:
    answer = asked(tenant)

    assert json.loads(answer.content) == {
        "keys": [{**signer.holder.jwk, "kid": signer.holder.jkt, "use": "sig"}]
    }
    assert answer["Cache-Control"] == "public, max-age=60"
    assert answer["Access-Control-Allow-Origin"] == "*"


def test_answer_is_signed_as_a_library_of_others_verifies(
    tenant: Tenant, signer: Signer, settings: Any
) -> None:
    answer, key = asked(tenant), make_token_key()
    asking = SimpleNamespace(method="GET", url=f"{settings.BASE_URL}/v1/key-directories/x", headers={})
    message = SimpleNamespace(status_code=200, url=asking.url, headers=dict(answer.headers), request=asking)
    known: EllipticCurvePublicKey = public_key(key.public_jwk)
    resolver = MappingKeyResolver(public_keys={key.kid: known}, private_keys={})
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ECDSA_P256_SHA256, key_resolver=resolver)

    (found,) = verifier.verify(message, expect_tag="http-message-signatures-directory")

    digest = b64encode(hashlib.sha256(answer.content).digest()).decode()
    assert '"@authority";req' in found.covered_components
    assert found.covered_components['"content-digest"'] == f"sha-256=:{digest}:"


def test_revoked_key_is_absent(tenant: Tenant, agent: Agent) -> None:
    key = register(agent, Signer().holder)

    services.revoke(
        tenant_id=tenant.id, agent_id=agent.id, key_id=key.id, reason="lost", actor=ACTOR, now=now()
    )

    assert listed(tenant) == []


@pytest.mark.parametrize("state", ENDED)
def test_keys_of_agents_that_do_not_stand_are_absent(
    tenant: Tenant, agent: Agent, signer: Signer, state: str
) -> None:
    assert listed(tenant) == [signer.holder.jkt]

    ENDED[state](agent)

    assert listed(tenant) == []


def test_key_of_an_agent_without_a_certificate_is_absent(tenant: Tenant) -> None:
    register(make_agent(tenant), Signer().holder)

    assert listed(tenant) == []


def test_tenants_and_environments_have_directories_of_their_own(tenant: Tenant, signer: Signer) -> None:
    with environments.use(Environment.TEST):
        make_token_key()

    assert listed(tenant, "?environment=live") == [signer.holder.jkt]
    assert listed(tenant, "?environment=test") == []
    assert listed(make_tenant()) == []
