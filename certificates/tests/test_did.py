"""`GET /1.0/identifiers/{did}`."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import jwt
import pytest
from cryptography import x509

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.models import Certificate
from certificates.public import messages
from certificates.public.did_views import history_of
from certificates.tests.factories import (
    make_certificate,
    make_certified_agent,
    make_overdue_certificate,
    reinstate_agent,
    renew_certificate,
    retire_agent,
    revoke_certificate,
    suspend_agent,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_tenant

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
    signed = messages.sign_message(certificate=certificate, payload={"a": 1})

    jwk = api.get(f"/1.0/identifiers/{agent.did}").json()["didDocument"]["verificationMethod"][0][
        "publicKeyJwk"
    ]
    algorithm = jwt.get_algorithm_by_name("RS256")
    key = algorithm.from_jwk(jwk)

    assert algorithm.verify(b'{"a":1}', key, base64.b64decode(signed.signature))


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


START = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def hours(count: float) -> datetime:
    return START + timedelta(hours=count)


def at(api: ApiClient, agent: Agent, moment: datetime | str) -> Any:
    text = moment if isinstance(moment, str) else moment.isoformat()
    return api.get(f"/1.0/identifiers/{agent.did}?versionTime={quote(text)}")


def key_in(answer: Any) -> str | None:
    """The serial number of the key in a document; None without a key."""
    methods = answer.json()["didDocument"].get("verificationMethod", [])
    return str(methods[0]["id"]).rpartition("#")[2] if methods else None


@pytest.fixture(scope="module")
def storied(world_transaction: None) -> tuple[Agent, list[str]]:
    """An agent certified at 1 h, held from 2 h to 3 h, renewed at 4 h, revoked at 5 h; both serials."""
    agent = make_agent(make_tenant())
    Agent.objects.filter(id=agent.id).update(created_at=START)
    first = make_certificate(agent, at=hours(1))
    suspend_agent(agent, at=hours(2))
    reinstate_agent(agent, at=hours(3))
    make_certificate(make_agent(agent.tenant))  # stocks the pool and counts for nothing here
    second = renew_certificate(first, at=hours(4))
    revoke_certificate(second, at=hours(5))
    return Agent.objects.get(id=agent.id), [first.serial_number, second.serial_number]


@pytest.mark.parametrize(
    ("hour", "serial", "version"),
    [
        (0, None, 1),
        (0.5, None, 1),
        (1, 0, 2),
        (1.5, 0, 2),
        (2, None, 3),
        (2.5, None, 3),
        (3, 0, 4),
        (4, 1, 5),
        (4.5, 1, 5),
        (5, None, 6),
        (5.5, None, 6),
    ],
)
def test_document_is_shown_as_it_was(
    api: ApiClient, storied: tuple[Agent, list[str]], hour: float, serial: int | None, version: int
) -> None:
    agent, serials = storied

    answer = at(api, agent, hours(hour))

    assert answer.status_code == 200
    assert key_in(answer) == (None if serial is None else serials[serial])
    assert answer.json()["didDocumentMetadata"]["versionId"] == str(version)


def test_versions_name_their_times_and_the_next(api: ApiClient, storied: tuple[Agent, list[str]]) -> None:
    agent, _ = storied

    assert at(api, agent, hours(1.5)).json()["didDocumentMetadata"] == {
        "created": "2026-03-01T12:00:00Z",
        "updated": "2026-03-01T13:00:00Z",
        "deactivated": False,
        "versionId": "2",
        "versionTime": "2026-03-01T13:00:00Z",
        "nextUpdate": "2026-03-01T14:00:00Z",
        "nextVersionId": "3",
    }
    assert "nextUpdate" not in at(api, agent, hours(6)).json()["didDocumentMetadata"]


@pytest.mark.parametrize("hour", range(6))
def test_every_version_resolves_by_its_number_and_the_time_that_it_states(
    api: ApiClient, storied: tuple[Agent, list[str]], hour: int
) -> None:
    """The rows have fractions of a second, and DID metadata has none."""
    agent, _ = storied
    found = at(api, agent, hours(hour)).json()
    stated = found["didDocumentMetadata"]

    assert at(api, agent, stated["versionTime"]).json() == found
    assert api.get(f"/1.0/identifiers/{agent.did}?versionId={stated['versionId']}").json() == found
    if "nextVersionId" not in stated:
        assert api.get(f"/1.0/identifiers/{agent.did}").json() == found


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("versionId=0", 404, "notFound"),
        ("versionId=7", 404, "notFound"),
        ("versionId=abc", 400, "invalidOptions"),
        ("versionId=", 400, "invalidOptions"),
        ("versionId=\u0661", 400, "invalidOptions"),
        ("versionId=1&versionTime=2026-03-01T12:00:00Z", 400, "invalidOptions"),
    ],
)
def test_version_that_is_not_there_is_refused(
    api: ApiClient, storied: tuple[Agent, list[str]], query: str, status: int, code: str
) -> None:
    answer = api.get(f"/1.0/identifiers/{storied[0].did}?{query}")

    assert answer.status_code == status
    assert answer.json()["didResolutionMetadata"] == {"error": code}


def test_result_has_the_media_type_of_results_where_asked(api: ApiClient) -> None:
    agent = make_agent(make_tenant())

    answer = api.get(f"/1.0/identifiers/{agent.did}", Accept="application/did-resolution, */*;q=0.1")

    assert answer["Content-Type"] == "application/did-resolution"
    assert json.loads(answer.content) == api.get(f"/1.0/identifiers/{agent.did}").json()


def test_expiry_is_a_version(api: ApiClient) -> None:
    certificate = make_overdue_certificate(make_tenant())
    agent, ends = certificate.agent, certificate.expires_at
    Agent.objects.filter(id=agent.id).update(created_at=certificate.issued_at)

    assert key_in(at(api, agent, ends)) == certificate.serial_number
    assert key_in(at(api, agent, ends + timedelta(seconds=1))) is None


def test_hold_that_ended_in_revocation_stays_without_a_key(api: ApiClient) -> None:
    agent = make_agent(make_tenant())
    Agent.objects.filter(id=agent.id).update(created_at=START)
    certificate = make_certificate(agent, at=hours(1))
    suspend_agent(agent, at=hours(2))
    revoke_certificate(certificate)

    history = history_of(Agent.objects.get(id=agent.id), now=now())

    assert [(version.since, version.certificate_id) for version in history] == [
        (START, None), (hours(1), certificate.id), (hours(2), None),
    ]  # fmt: skip


def test_agent_has_no_document_before_it_was_there(api: ApiClient, storied: tuple[Agent, list[str]]) -> None:
    answer = at(api, storied[0], hours(-1))

    assert answer.status_code == 404
    assert answer.json()["didResolutionMetadata"] == {"error": "notFound"}


@pytest.mark.parametrize(
    "moment", ["", "x", "2026-13-01", "2026-03-01T25:00:00Z", "9999-01-01", "\u0662026-03-01", "\x00", "1e9"]
)
def test_malformed_and_future_times_are_refused(
    api: ApiClient, storied: tuple[Agent, list[str]], moment: str
) -> None:
    answer = at(api, storied[0], moment)

    assert answer.status_code == 400
    assert answer.json()["didResolutionMetadata"] == {"error": "invalidOptions"}


def test_retired_agents_past_can_be_resolved(api: ApiClient) -> None:
    agent = make_agent(make_tenant())
    Agent.objects.filter(id=agent.id).update(created_at=START)
    certificate = make_certificate(agent, at=hours(1))
    retire_agent(agent, at=hours(2))

    before, after = at(api, agent, hours(1.5)), at(api, agent, hours(2))

    assert key_in(before) == certificate.serial_number
    assert before.json()["didDocumentMetadata"]["deactivated"] is True
    assert after.status_code == api.get(f"/1.0/identifiers/{agent.did}").status_code == 410
    assert after.json()["didDocumentMetadata"] == {"deactivated": True}


def test_bare_document_of_the_past(api: ApiClient, storied: tuple[Agent, list[str]]) -> None:
    agent, serials = storied
    address = f"/1.0/identifiers/{agent.did}?versionTime={quote(hours(1.5).isoformat())}"

    answer = api.get(address, Accept="application/did")

    assert json.loads(answer.content)["verificationMethod"][0]["id"] == f"{agent.did}#{serials[0]}"


def test_services_are_those_that_the_certificate_names(api: ApiClient) -> None:
    agent = make_certified_agent(make_tenant())
    leaf = x509.load_pem_x509_certificate(Certificate.objects.get(agent=agent).certificate_pem.encode())
    (point,) = leaf.extensions.get_extension_for_class(x509.CRLDistributionPoints).value
    assert point.full_name is not None

    document = api.get(f"/1.0/identifiers/{agent.did}").json()["didDocument"]

    found = {
        one["id"].rpartition("#")[2]: (one["type"], one["serviceEndpoint"]) for one in document["service"]
    }
    base = found["certificate"][1].partition("/v1/")[0]
    assert found == {
        "certificate": ("CertificateVerification", f"{base}/v1/verify/{leaf.serial_number:040x}"),
        "crl": ("CertificateRevocationList", point.full_name[0].value),
        "ocsp": ("OnlineCertificateStatusProtocol", f"{base}/v1/ocsp"),
        "agent-card": ("A2AAgentCard", f"{base}/v1/agent-cards/{agent.did}"),
    }


def test_document_shows_nothing_of_the_tenant(api: ApiClient) -> None:
    tenant = make_tenant("Secretive Trading GmbH")
    agent = make_certified_agent(tenant, name="hush-bot", metadata={"note": "hush"}, description="hush")

    document = dict(api.get(f"/1.0/identifiers/{agent.did}").json()["didDocument"])
    del document["verificationMethod"]  # the certificate itself, which states the operator

    assert "hush" not in str(document)
    assert "Secretive" not in str(document)
    assert str(tenant.id) not in str(document)
