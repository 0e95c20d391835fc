"""Streams and signals for tests, named by state."""

from typing import Any

import jwt

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.sealing import sealer
from auditlog.vocabulary import Actor
from certificates.models import Certificate
from certificates.tests.factories import make_certificate
from compliance.core.clock import now
from delegation.token_keys import keys
from signals import streams
from signals.feed import following
from signals.models import Stream
from signals.streams import StreamDelivery
from signals.vocabulary import SUPPORTED_EVENTS, DeliveryMethod
from tenancy.models import Tenant

ACTOR = Actor.system("tests")
URL = "https://gateway.example.com/signals"


def make_poll_stream(tenant: Tenant, **fields: Any) -> Stream:
    return _make(tenant, StreamDelivery(DeliveryMethod.POLL), **fields)


def make_push_stream(
    tenant: Tenant, url: str = URL, authorization: str | None = None, **fields: Any
) -> Stream:
    return _make(tenant, StreamDelivery(DeliveryMethod.PUSH, url, authorization), **fields)


def _make(tenant: Tenant, delivery: StreamDelivery, **fields: Any) -> Stream:
    given = {"events_requested": list(SUPPORTED_EVENTS), "actor": ACTOR, "now": now(), **fields}
    return streams.create(tenant_id=tenant.id, delivery=delivery, **given)


def make_certified_agent(tenant: Tenant) -> tuple[Agent, Certificate]:
    agent = make_agent(tenant)
    certificate = make_certificate(agent)
    agent.refresh_from_db()
    return agent, certificate


def derive() -> None:
    """Seal what was recorded, and derive its signals."""
    sealer.seal_all()
    while following.follow(now=now()):
        pass


def read_token(token: str, *, audience: str) -> dict[str, Any]:
    """Verify a Security Event Token with the published keys, as a receiver does; its claims."""
    header = jwt.get_unverified_header(token)
    assert header["typ"] == "secevent+jwt"
    (key,) = [one for one in keys.jwks(now=now()) if one["kid"] == header["kid"]]
    claims: dict[str, Any] = jwt.decode(
        token, jwt.PyJWK(key).key, algorithms=["ES256"], audience=audience, options={"verify_iat": True}
    )
    return claims
