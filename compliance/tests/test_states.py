"""The table of docs/states.md: what every entrance answers for an agent and its certificate in each state."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from django.conf import settings

from agents.models import Agent
from agents.tests.factories import ACTOR, make_agent
from certificates import services
from certificates.lists import list_audit, publication
from certificates.models import Certificate, CertificateAuthority
from certificates.public import messages
from certificates.tests.factories import (
    CARD,
    make_authorities,
    make_certificate,
    reinstate_agent,
    revoke_certificate,
    suspend_agent,
)
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from delegation.issuing.issuance import IssuedDelegation
from delegation.tests.factories import CHAIN, make_token, make_token_key
from events.tests.factories import make_high_event
from tenancy.tests.factories import make_key, make_tenant

DOCUMENT = settings.BASE_DIR / "docs" / "states.md"
PAYLOAD = {"order": 7}
METADATA = {"permitted_actions": ["read"]}
NOTHING = "\u2013"


def table() -> dict[str, dict[str, str]]:
    """The cells of the document's table by state, then by column."""
    lines = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    header, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


@dataclass
class Subject:
    """An agent, its first certificate with a message that it signed then, and a token that it issued then."""

    api: ApiClient
    agent: Agent
    certificate: Certificate | None = None
    signature: str = ""
    token: IssuedDelegation | None = None

    @property
    def issued(self) -> Certificate:
        assert self.certificate is not None
        return self.certificate


@pytest.fixture
def subject(api: ApiClient) -> Subject:
    tenant = make_tenant()
    make_token_key()
    make_authorities()
    agent = make_agent(tenant, agent_card=CARD, metadata=METADATA)
    return Subject(api.as_key(make_key(tenant)), agent, token=make_token(agent))


def certify(subject: Subject) -> None:
    subject.certificate = make_certificate(subject.agent)
    signed = messages.sign_message(certificate=subject.certificate, payload=PAYLOAD)
    subject.signature = signed.signature
    subject.token = make_token(subject.agent)


def suspend(subject: Subject) -> None:
    certify(subject)
    suspend_agent(subject.agent)
    publish()


def reinstate(subject: Subject) -> None:
    reinstate_agent(subject.agent)


def end(subject: Subject) -> None:
    """Let the certificate's end pass, and the sweep see it."""
    ended = now() - timedelta(minutes=1)
    rows = Certificate.objects.filter(id=subject.issued.id)
    rows.update(issued_at=ended - timedelta(days=1), expires_at=ended)
    services.expire_due(now=now())


def revoke(subject: Subject) -> None:
    revoke_certificate(subject.issued, reason="keyCompromise")


def stop(subject: Subject) -> None:
    certify(subject)
    for _ in range(3):
        make_high_event(subject.agent, received_at=now())


def retire(subject: Subject) -> None:
    services.retire_agent(
        tenant_id=subject.agent.tenant_id, agent_id=subject.agent.id, reason="done", actor=ACTOR, now=now()
    )


STEPS: dict[str, tuple[Callable[[Subject], None], ...]] = {
    "registered": (),
    "certified": (certify,),
    "suspended": (suspend,),
    "suspended and reinstated": (suspend, reinstate),
    "suspended, past its certificate's end": (suspend, end),
    "suspended, reinstated past its certificate's end": (suspend, end, reinstate),
    "suspended, certificate then revoked by hand": (suspend, revoke),
    "stopped by the service": (stop,),
    "stopped by the service and reinstated": (stop, reinstate),
    "certificate revoked by hand": (certify, revoke),
    "certificate expired": (certify, end),
    "retired": (certify, retire),
    "suspended and retired": (suspend, retire),
}


def publish() -> None:
    """A round of the CA's lists, its delta with it; the base is its first list."""
    authority = CertificateAuthority.objects.issuing()
    due = publication.publish(authority_id=authority.id, actor=ACTOR, now=now())
    if due is None:
        publication.publish(authority_id=authority.id, actor=ACTOR, now=now(), force=True)


def agent_status(subject: Subject) -> str:
    status = str(subject.api.get(f"/v1/agents/{subject.agent.id}").json()["data"]["status"])
    if subject.certificate is not None:
        assert verification(subject)["agent_status"] == status
    return status


def verification(subject: Subject) -> dict[str, Any]:
    found: dict[str, Any] = subject.api.get(f"/v1/verify/{subject.issued.serial_number}").json()["data"]
    return found


def verify(subject: Subject) -> str:
    data = verification(subject)
    reason = data["revocation_reason"]
    assert (reason is None) is (data["revoked_at"] is None)
    return data["status"] if reason is None else f"{data['status']}, {reason.split(':')[0]}"


def ask_ocsp(subject: Subject) -> str:
    leaf = x509.load_pem_x509_certificate(subject.issued.certificate_pem.encode())
    issuer = x509.load_der_x509_certificate(bytes(subject.issued.authority.certificate_der))
    request = ocsp.OCSPRequestBuilder().add_certificate(leaf, issuer, hashes.SHA256()).build()
    answer = subject.api.raw(
        "POST", "/v1/ocsp", request.public_bytes(Encoding.DER), "application/ocsp-request"
    )
    found = ocsp.load_der_ocsp_response(answer.content)
    status = found.certificate_status.name.lower()
    if found.revocation_reason is None:
        return status
    revoked_at = Certificate.objects.get(id=subject.issued.id).revoked_at
    assert revoked_at is not None
    assert found.revocation_time_utc == revoked_at.replace(microsecond=0)
    return f"{status}, {found.revocation_reason.value}"


def on_list(subject: Subject, part: str) -> str:
    address = f"/v1/crl/{subject.issued.authority.serial_number}{part}"
    crl = x509.load_der_x509_crl(subject.api.get(address).content)
    entry = crl.get_revoked_certificate_by_serial_number(int(subject.issued.serial_number, 16))
    if entry is None:
        return NOTHING
    return str(entry.extensions.get_extension_for_class(x509.CRLReason).value.reason.value)


def on_full_list_and_shard(subject: Subject) -> str:
    full, shard = on_list(subject, ""), on_list(subject, f"/{subject.issued.crl_shard}")
    assert full == shard
    return full


def on_delta(subject: Subject) -> str:
    return on_list(subject, "/delta")


def verify_message(subject: Subject) -> str:
    body = {
        "payload": PAYLOAD,
        "signature": subject.signature,
        "certificate_serial": subject.issued.serial_number,
    }
    data = subject.api.post("/v1/verify/message", body).json()["data"]
    return "valid" if data["valid"] else str(data["reason"])


def did_document(subject: Subject) -> str:
    answer = subject.api.get(f"/1.0/identifiers/{subject.agent.did}")
    if answer.status_code != 200:
        return str(answer.status_code)
    return "key" if "verificationMethod" in answer.json()["didDocument"] else "no key"


def agent_card(subject: Subject) -> str:
    return str(subject.api.get(f"/v1/agent-cards/{subject.agent.did}").status_code)


def ingest(subject: Subject) -> str:
    body = {"agent_id": str(subject.agent.id), "action_type": "api_call"}
    return str(subject.api.post("/v1/events", body).status_code)


def delegate(subject: Subject) -> str:
    answer = subject.api.post(f"/v1/agents/{subject.agent.id}/delegation", {"chain": CHAIN})
    return str(answer.status_code)


def token(subject: Subject) -> str:
    """Return whether a token of the first certificate's time stands, as introspection says too."""
    assert subject.token is not None
    path = f"/v1/delegations/{subject.token.delegation.token_id}"
    data = subject.api.get(path).json()["data"]
    form = urlencode({"token": subject.token.token}).encode()
    introspected = subject.api.raw("POST", "/oauth/introspect", form, "application/x-www-form-urlencoded")
    assert introspected.json()["active"] is (data["reason"] is None)
    return str(data["reason"] or data["state"])


def certify_again(subject: Subject) -> str:
    answer = subject.api.post(f"/v1/agents/{subject.agent.id}/certify")
    if answer.status_code == 201 and subject.certificate is not None:
        assert answer.json()["data"]["serial_number"] != subject.certificate.serial_number
    return str(answer.status_code)


OF_CERTIFICATES: dict[str, Callable[[Subject], str]] = {
    "verify": verify,
    "OCSP": ask_ocsp,
    "full list, shard": on_full_list_and_shard,
    "delta": on_delta,
    "verify/message": verify_message,
}
OF_AGENTS: dict[str, Callable[[Subject], str]] = {
    "agent_status": agent_status,
    "DID document": did_document,
    "agent card": agent_card,
    "ingest": ingest,
    "token": token,
    "delegation": delegate,
    "certify": certify_again,
}


def test_document_has_a_row_for_every_state_and_a_column_for_every_entrance() -> None:
    rows = table()

    assert list(rows) == list(STEPS)
    assert all({*row} == {*OF_AGENTS, *OF_CERTIFICATES} for row in rows.values())


@pytest.mark.parametrize("state", STEPS)
def test_every_entrance_answers_as_the_document_says(subject: Subject, state: str) -> None:
    for step in STEPS[state]:
        step(subject)
    publish()

    answered = {
        column: ask(subject) if subject.certificate is not None else NOTHING
        for column, ask in OF_CERTIFICATES.items()
    }
    assert list_audit.findings(CertificateAuthority.objects.issuing(), now()) == []
    answered |= {column: ask(subject) for column, ask in OF_AGENTS.items()}

    assert answered == table()[state]
