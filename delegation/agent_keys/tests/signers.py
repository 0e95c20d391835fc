"""Agents that sign requests with a library of others (PyPI http-message-signatures), and their keys."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import uuid4

import requests
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from http_message_signatures import HTTPMessageSigner, MappingKeyResolver, algorithms

from agents.models import Agent
from auditlog.vocabulary import Actor
from certificates import services as certificates
from certificates.tests.factories import make_past_end, revoke_certificate, suspend_agent
from compliance.core.clock import now
from delegation.agent_keys import services
from delegation.agent_keys.models import AgentKey
from delegation.tests.holders import Holder

ACTOR = Actor.system("tests")
URL = "https://api.example/orders/7?x=1"
OF_DIRECTORY = "https://agents.example"
COVERED = ("@method", "@authority", "@path", '"signature-agent";key="sig1"')


def register(agent: Agent, holder: Holder) -> AgentKey:
    return services.register(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        jwk=holder.jwk,
        proven_key=holder.jkt,
        actor=ACTOR,
        now=now(),
    )


def retire_agent(agent: Agent) -> Agent:
    return certificates.retire_agent(
        tenant_id=agent.tenant_id, agent_id=agent.id, reason="done", actor=ACTOR, now=now()
    )


ENDED: dict[str, Callable[[Agent], Any]] = {
    "agent_suspended": suspend_agent,
    "agent_retired": retire_agent,
    "certificate_revoked": lambda agent: revoke_certificate(agent.certificates.get()),
    "certificate_expired": lambda agent: make_past_end(agent.certificates.get()),
}
"""What ends an agent's standing, by the gateway's word for it."""


@dataclass(frozen=True)
class Signer:
    """Someone with an Ed25519 key."""

    holder: Holder = field(default_factory=lambda: Holder(Ed25519PrivateKey.generate()))

    @cached_property
    def library(self) -> HTTPMessageSigner:
        keys: Any = {self.holder.jkt: self.holder.key}
        resolver = MappingKeyResolver(public_keys={}, private_keys=keys)
        return HTTPMessageSigner(signature_algorithm=algorithms.ED25519, key_resolver=resolver)

    def headers(
        self,
        *,
        method: str = "GET",
        url: str = URL,
        covered: Sequence[str] = COVERED,
        at: datetime | None = None,
        life: timedelta = timedelta(minutes=1),
        sent: dict[str, str] | None = None,
        **more: Any,
    ) -> dict[str, str]:
        """The headers of a signed request."""
        made_at = at or now()
        stated = {"Signature-Agent": f'sig1="{OF_DIRECTORY}"', **(sent or {})}
        message = requests.Request(method, url, headers=stated).prepare()
        options = {
            "key_id": self.holder.jkt,
            "label": "sig1",
            "tag": "web-bot-auth",
            "created": made_at,
            "expires": made_at + life,
            "nonce": uuid4().hex,
            "use_existing_digest": "Content-Digest" in stated,
            **more,
        }
        self.library.sign(message, covered_component_ids=covered, **options)
        return {**stated, **{name: message.headers[name] for name in ("Signature", "Signature-Input")}}
