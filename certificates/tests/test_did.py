"""`GET /1.0/identifiers/{did}`."""

import base64

import jwt
import pytest
from cryptography import x509

from agents.tests.factories import make_agent, make_retired_agent
from certificates import services
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.client import ApiClient

UNKNOWN = "did:service:live:01890000-0000-7000-8000-000000000000"


def test_certified_agents_document_carries_its_key_and_chain(api: ApiClient) -> None:
    agent = make_certified_agent(make_tenant())
    certificate = Certificate.objects.get(agent=agent)

    answer = api.get(f"/1.0/identifiers/{agent.did}")

    assert answer.status_code == 200
    document = answer.json()["didDocument"]
    method = document["verificationMethod"][0]
    leaf, issuing, root = (
        x509.load_der_x509_certificate(base64.b64decode(link)) for link in method["publicKeyJwk"]["x5c"]
    )
    assert document["id"] == agent.did
    assert document["assertionMethod"] == [method["id"]]
    assert f"{leaf.serial_number:040x}" == certificate.serial_number
    assert leaf.issuer == issuing.subject
    assert issuing.issuer == root.subject


def test_key_of_the_document_verifies_the_agents_signature(api: ApiClient) -> None:
    agent = make_certified_agent(make_tenant())
    certificate = Certificate.objects.get(agent=agent)
    signed = services.sign_message(certificate=certificate, payload={"a": 1})

    jwk = api.get(f"/1.0/identifiers/{agent.did}").json()["didDocument"]["verificationMethod"][0][
        "publicKeyJwk"
    ]
    algorithm = jwt.get_algorithm_by_name("RS256")
    key = algorithm.from_jwk(jwk)

    assert algorithm.verify(b'{"a":1}', key, base64.b64decode(signed.signature))


def test_agent_without_certificate_has_no_key(api: ApiClient) -> None:
    agent = make_agent(make_tenant())

    document = api.get(f"/1.0/identifiers/{agent.did}").json()["didDocument"]

    assert "verificationMethod" not in document


def test_document_alone_is_given_to_who_accepts_it(api: ApiClient) -> None:
    agent = make_agent(make_tenant())

    answer = api.get(f"/1.0/identifiers/{agent.did}", Accept="application/did+ld+json")

    assert answer["Content-Type"] == "application/did+ld+json"
    assert answer.json()["id"] == agent.did


def test_sandbox_agents_are_resolved_in_the_sandbox(api: ApiClient) -> None:
    with environments.use(Environment.TEST):
        agent = make_agent(make_tenant())

    assert api.get(f"/1.0/identifiers/{agent.did}").status_code == 200
    assert api.get(f"/1.0/identifiers/{agent.did.replace(':test:', ':live:')}").status_code == 404


@pytest.mark.parametrize(
    ("did", "status", "code"),
    [
        (UNKNOWN, 404, "notFound"),
        ("nonsense", 400, "invalidDid"),
        ("did:service:prod:x", 400, "invalidDid"),
        ("did:service:live:" + "Z" * 36, 400, "invalidDid"),
        ("did:web:example.com", 501, "methodNotSupported"),
    ],
)
def test_refusals_follow_the_resolvers_binding(api: ApiClient, did: str, status: int, code: str) -> None:
    answer = api.get(f"/1.0/identifiers/{did}")

    assert answer.status_code == status
    assert answer.json()["didResolutionMetadata"] == {"error": code}
    assert answer.json()["error"]


def test_retired_agent_is_gone(api: ApiClient) -> None:
    agent = make_retired_agent(make_tenant())

    answer = api.get(f"/1.0/identifiers/{agent.did}")

    assert answer.status_code == 410
    assert answer.json()["didDocumentMetadata"] == {"deactivated": True}
