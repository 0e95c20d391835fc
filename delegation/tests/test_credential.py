"""`GET /v1/agents/{id}/credential`, read by code that shares none of the service's."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from joserfc import jws as joserfc_jws, jwt as joserfc_jwt
from joserfc.jwk import KeySet
from openvc.status.token_status_list import check_token_status
from pyld import jsonld

from agents.models import Agent
from auditlog.models import AuditEntry
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from delegation.issued import status_lists
from delegation.models import IssuedCredential
from delegation.tasks import forget_issued
from delegation.tests import test_standing as ends
from delegation.tests.test_status_list import bit_of
from tenancy.models import Tenant

CONTEXT = Path(__file__).with_name("vectors") / "credentials_v2.json"
"""`https://www.w3.org/ns/credentials/v2`, as the W3C publishes it."""


def issued(client: ApiClient, agent: Agent) -> str:
    answer = client.get(f"/v1/agents/{agent.id}/credential")
    assert answer.status_code == 200, answer.json()
    text: str = answer.json()["data"]["credential"]
    return text


def verified(client: ApiClient, text: str, environment: str = "live") -> dict[str, Any]:
    """The credential, verified as VC-JOSE-COSE says with the published keys."""
    headers = joserfc_jws.extract_compact(text.encode()).headers()
    assert (headers["typ"], headers["cty"]) == ("vc+jwt", "vc")
    return verified_claims(client, text, environment)


def verified_claims(client: ApiClient, text: str, environment: str = "live") -> dict[str, Any]:
    jwks = KeySet.import_key_set(client.get(f"/.well-known/jwks.json?environment={environment}").json())
    found = joserfc_jwt.decode(text, jwks, algorithms=["ES256"]).claims
    joserfc_jwt.JWTClaimsRegistry().validate(found)
    assert found["iss"] == settings.TOKEN_ISSUER
    return found


def test_the_credential_states_what_the_certificate_does(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant, metadata={"permitted_actions": ["read", "trade"]})
    certificate = Certificate.objects.get(agent=agent)

    found = verified(client, issued(client, agent))

    assert found["@context"][0] == "https://www.w3.org/ns/credentials/v2"
    assert found["type"] == ["VerifiableCredential", "AgentCredential"]
    assert found["issuer"] == found["iss"] == settings.TOKEN_ISSUER
    assert "vc" not in found  # which is of the data model 1.1
    subject = found["credentialSubject"]
    assert (subject["id"], found["sub"]) == (agent.did, agent.did)
    assert subject["certificate_serial"] == certificate.serial_number
    assert subject["permitted_actions"] == ["read", "trade"]
    start, end = (datetime.fromisoformat(found[name]) for name in ("validFrom", "validUntil"))
    assert end - start == timedelta(days=1)
    assert (found["iat"], found["exp"]) == (start.timestamp(), end.timestamp())
    assert found["credentialStatus"]["status_list"] == found["status"]["status_list"]
    entry = AuditEntry.objects.of_type("credential.issued").about(agent.id).get()
    assert entry.metadata is not None
    assert entry.metadata["credential_id"] == found["id"] == found["jti"]


def test_a_json_ld_processor_knows_every_member(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant, model="gpt-5", version="2.1", metadata={"permitted_actions": ["a"]})
    found = verified(client, issued(client, agent))

    def load(url: str, options: Any = None) -> dict[str, Any]:
        assert url == found["@context"][0]
        context = json.loads(CONTEXT.read_text())
        return {"contentType": None, "contextUrl": None, "documentUrl": url, "document": context}

    (expanded,) = jsonld.expand(found, {"documentLoader": load})

    assert len(expanded) == len(found) - 1  # without its context
    for name in ("credentialSubject", "credentialStatus"):
        (part,) = expanded[f"https://www.w3.org/2018/credentials#{name}"]
        assert len(part) == len(found[name])
    assert len(found["credentialSubject"]) == 8


def test_a_library_of_credentials_reads_its_status(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    found = verified(client, issued(client, agent))

    def listed(uri: str) -> dict[str, Any]:
        text = client.get(uri.removeprefix(settings.BASE_URL)).content.decode()
        return verified_claims(client, text)

    before = check_token_status(found, resolve_status_list_token=listed)
    ends.revoke(agent)
    status_lists.forget()
    after = check_token_status(found, resolve_status_list_token=listed)

    assert before is not None
    assert after is not None
    assert (before.revoked, after.revoked) == (False, True)


def test_the_guides_code_verifies_it(client: ApiClient, tenant: Tenant) -> None:
    guide = (
        (Path(settings.BASE_DIR) / "sdk/docs/verify-offline.md").read_text().partition("## A credential")[2]
    )
    code = guide.partition("```python\n")[2].partition("```")[0]
    names = {
        "jwks": client.get("/.well-known/jwks.json").json(),
        "credential": issued(client, make_certified_agent(tenant)),
        "ISSUER": settings.TOKEN_ISSUER,
    }

    exec(code, names)  # noqa: S102  (the guide is ours)

    assert names["token"].claims["type"] == ["VerifiableCredential", "AgentCredential"]


def test_it_ends_with_the_certificate(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    end = now() + timedelta(hours=1)
    Certificate.objects.filter(agent=agent).update(expires_at=end)

    assert verified(client, issued(client, agent))["exp"] == int(end.timestamp())


def test_credentials_under_one_certificate_share_their_place(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)

    first, second = (verified(client, issued(client, agent)) for _ in range(2))

    assert first["status"] == second["status"]
    assert first["id"] != second["id"]
    assert IssuedCredential.objects.count() == 1


@pytest.mark.parametrize("happens", [ends.suspend, ends.retire, ends.revoke, ends.expire, ends.renew])
def test_its_bit_shows_that_it_was_stopped(client: ApiClient, tenant: Tenant, happens: Any) -> None:
    agent = make_certified_agent(tenant)
    found = verified(client, issued(client, agent))
    assert bit_of(client, found) == 0

    happens(agent)
    status_lists.forget()

    assert bit_of(client, found) == 1


@pytest.mark.parametrize("happens", [ends.suspend, ends.retire, ends.revoke, ends.expire])
def test_an_agent_that_does_not_stand_gets_none(client: ApiClient, tenant: Tenant, happens: Any) -> None:
    agent = make_certified_agent(tenant)
    happens(agent)

    answer = client.get(f"/v1/agents/{agent.id}/credential")

    assert answer.status_code == 422
    assert "no certificate in force" in answer.json()["error"]


def test_a_reinstated_agents_credential_counts_again(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    found = verified(client, issued(client, agent))
    ends.suspend(agent)
    client.post(f"/v1/agents/{agent.id}/reinstate", {"reason": "looked at"})
    status_lists.forget()

    assert bit_of(client, found) == 0


def test_places_are_forgotten_after_the_certificates_end(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    issued(client, agent)

    forget_issued.apply(headers={"service_environment": "live"}).get()
    assert IssuedCredential.objects.count() == 1
    IssuedCredential.objects.delete_expired(now=now() + timedelta(days=374))

    assert not IssuedCredential.objects.exists()
