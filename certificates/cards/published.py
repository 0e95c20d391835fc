"""Signed agent cards: an agent's key signs a card once, until what it says or the certificate changes."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any, Final

import rfc8785
from django.conf import settings

from agents.did import AgentDid
from agents.errors import AgentNotFound
from agents.models import Agent, AgentStatus
from certificates.cards.content import CardFacts, content_of
from certificates.errors import CardNotFound
from certificates.models import Certificate, SignedCard
from certificates.pki import jws as jose
from certificates.public.messages import key_id, sign_octets
from compliance.core import environments
from compliance.core.encodings import b64url_encode
from compliance.core.errors import Unavailable

LONGEST_WAIT_SECONDS: Final = 5.0
_signing: Final = Lock()
"""Anyone may ask for cards: a process signs one at a time, so that they can't fill the HSM."""


@dataclass(frozen=True)
class PublishedCard:
    """A signed card, and the digest of what was signed, which changes with each of its changes."""

    document: dict[str, Any]
    digest: str


def published(did: AgentDid, *, now: datetime) -> PublishedCard:
    """The card of an active agent that publishes one, for anyone.

    Raises `CardNotFound` for every other, and the HSM's 503 errors where the card must be signed.
    """
    with environments.use(did.environment):
        agent, certificate = _publisher(did, now)
        content = content_of(_facts(agent, certificate))
        protected = jose.card_header(key_id(certificate))
        octets = jose.card_input(protected, rfc8785.dumps(content))
        digest = hashlib.sha256(octets).hexdigest()
        signature = _stored(agent, digest) or _signed(agent, certificate, octets, digest, now)
    signatures = [{"protected": protected, "signature": signature}]
    return PublishedCard({**content, "signatures": signatures}, digest)


def _publisher(did: AgentDid, now: datetime) -> tuple[Agent, Certificate]:
    try:
        agent = Agent.objects.find(did.agent_id)
    except AgentNotFound as error:
        raise CardNotFound() from error
    if agent.agent_card is None or agent.status != AgentStatus.ACTIVE:
        raise CardNotFound()
    certificate = Certificate.objects.of_agent(agent.id).active(now).first()
    if certificate is None or not certificate.claims["permitted_actions"]:
        raise CardNotFound()
    return agent, certificate


def _facts(agent: Agent, certificate: Certificate) -> CardFacts:
    claims = certificate.claims
    return CardFacts(
        name=agent.name,
        description=agent.description,
        wishes=agent.agent_card or {},
        did=claims["did"],
        operator=claims["operator"],
        version=claims["model_version"],
        permitted_actions=tuple(claims["permitted_actions"]),
        certificate_serial=certificate.serial_number,
        verify_url=f"{settings.BASE_URL}/v1/verify/{certificate.serial_number}",
    )


def _stored(agent: Agent, digest: str) -> str | None:
    return SignedCard.objects.filter(agent=agent, digest=digest).values_list("signature", flat=True).first()


def _signed(agent: Agent, certificate: Certificate, octets: bytes, digest: str, now: datetime) -> str:
    if not _signing.acquire(timeout=LONGEST_WAIT_SECONDS):
        raise Unavailable("More agent cards wait to be signed than can be; retry with exponential backoff")
    try:
        found = _stored(agent, digest)
        if found is None:
            found = b64url_encode(sign_octets(certificate, octets))
            row = SignedCard(agent=agent, digest=digest, signature=found, signed_at=now)
            # Another process may have signed the same card meanwhile; signatures of one key are alike.
            SignedCard.objects.bulk_create(
                [row],
                update_conflicts=True,
                unique_fields=["agent"],
                update_fields=["digest", "signature", "signed_at"],
            )
    finally:
        _signing.release()
    return found
