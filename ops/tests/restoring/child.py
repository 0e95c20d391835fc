"""`python -m ops.tests.restoring.child`: a process of the service that states what a restore must keep.

The answer is one JSON document: of each environment the newest list, the tree and its newest checkpoint.
"""

import json
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

import django

django.setup()

from agents import services as agents  # noqa: E402
from auditlog.sealing import sealer, tree  # noqa: E402
from auditlog.vocabulary import Actor  # noqa: E402
from certificates import services as certificates  # noqa: E402
from certificates.issuing import issuance  # noqa: E402
from certificates.lists import publication  # noqa: E402
from certificates.models import Certificate, CertificateAuthority, RevocationList  # noqa: E402
from certificates.public import messages  # noqa: E402
from certificates.querysets import CertificateQuerySet  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.encodings import b64_encode  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from webhooks import services as webhooks  # noqa: E402

ACTOR = Actor.system("bench")


def live(tenant: str, agents_made: str) -> dict[str, Any]:
    """Certify agents, revoke the oldest certificate, make a webhook, publish lists; seal and sign the log."""
    return {each.value: _live_in(each, UUID(tenant), int(agents_made)) for each in Environment}


def state() -> dict[str, Any]:
    """State what the environments are now."""
    return {each.value: _state_of(each) for each in Environment}


def sign(*serials: str) -> dict[str, Any]:
    """Sign a message with the key of each certificate, and verify it as a receiver does."""
    found = {}
    with environments.use(Environment.LIVE):
        for serial in serials:
            certificate = Certificate.objects.with_serial_text(serial)
            made = messages.sign_message(certificate=certificate, payload={"order": serial})
            found[serial] = messages.verify_message(
                serial=serial, payload={"order": serial}, signature=made.signature, now=now()
            ).valid
    return found


def publish() -> dict[str, Any]:
    """Publish lists, seal and sign; then as `state`."""
    for each in Environment:
        with environments.use(each):
            for authority in CertificateAuthority.objects.publishing(now()):
                publication.publish(authority_id=authority.id, actor=ACTOR, now=now(), force=True)
            _seal()
    return state()


def seal() -> dict[str, Any]:
    """Seal and sign; then as `state`."""
    for each in Environment:
        with environments.use(each):
            _seal()
    return state()


def _live_in(environment: Environment, tenant_id: UUID, count: int) -> dict[str, Any]:
    with environments.use(environment):
        for number in range(count):
            fields = {
                "name": f"restore-{number}",
                "model": "gpt-5",
                "version": "2.1.0",
                "model_hash": "sha256:9f86d081884c7d659a2feaa0c55ad015",
                "metadata": {"permitted_actions": ["read"]},
            }
            agent = agents.register(tenant_id=tenant_id, fields=fields, actor=ACTOR, now=now())
            issuance.issue(tenant_id=tenant_id, agent_id=agent.id, actor=ACTOR, now=now())
        oldest = Certificate.objects.active(now()).earliest("issued_at", "id")
        certificates.revoke(
            tenant_id=tenant_id, certificate_id=oldest.id, reason="key compromise", actor=ACTOR, now=now()
        )
        webhooks.create(
            tenant_id=tenant_id,
            url="http://127.0.0.1:9/hook",
            events=["certificate.revoked"],
            actor=ACTOR,
            now=now(),
        )
        publication.publish_due(actor=ACTOR, now=now())
        _seal()
    return _state_of(environment)


def _seal() -> None:
    sealer.seal_all()
    sealer.sign_head(now=now())


def _state_of(environment: Environment) -> dict[str, Any]:
    with environments.use(environment):
        issuing = CertificateAuthority.objects.issuing()
        newest, checkpoint = RevocationList.objects.latest_of(issuing), tree.latest_checkpoint()
        return {
            "tree": tree.head().size,
            "checkpoint": checkpoint.note if checkpoint else "",
            "list_number": newest.number,
            "list": b64_encode(newest.der),
            "active": _serials(Certificate.objects.active(now())),
            "revoked": _serials(Certificate.objects.filter(status="revoked")),
        }


def _serials(rows: CertificateQuerySet) -> list[str]:
    return list(rows.order_by("issued_at", "id").values_list("serial_number", flat=True))


COMMANDS: dict[str, Callable[..., dict[str, Any]]] = {
    each.__name__: each for each in (live, state, sign, publish, seal)
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
