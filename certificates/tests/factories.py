"""CAs and certificates for tests, named by state, with real keys in the test run's tokens.

Key generation is slow, and a test's rows are rolled back: the CAs' rows and keys are made once in a test run
and laid down again for each test, and so are the agents' keys, by way of the pool (see `agent_keys`).
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connections

from agents.models import Agent
from agents.tests.factories import ACTOR, make_agent
from certificates import authorities, services
from certificates.issuing import issuance, key_pool
from certificates.models import (
    AuthorityRole,
    Certificate,
    CertificateAuthority,
    Issuance,
    OcspResponder,
    PooledKey,
    RevocationList,
    RevocationListPart,
)
from certificates.pki.serials import format_serial, new_serial
from certificates.tests.agent_keys import make_agent_key
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.keys.base import KeyRef, KeyStorage
from tenancy.models import Tenant

_CHAIN: Final[tuple[Any, ...]] = (CertificateAuthority, OcspResponder, RevocationList, RevocationListPart)
_chains: Final[dict[Environment, list[tuple[Any, list[Any]]]]] = {}
_keys: Final[dict[Environment, list[KeyRef]]] = defaultdict(list)

CARD: Final = {"url": "https://agents.example/bot"}


def make_authorities() -> CertificateAuthority:
    """The CA chain of the current environment with its first lists; the issuing CA."""
    environment = environments.current()
    if environment in _chains and not CertificateAuthority.objects.exists():
        for model, rows in _chains[environment]:
            model.objects.bulk_create(rows)
        if _has_chain():
            return CertificateAuthority.objects.issuing()
    issuing = authorities.bootstrap(now=now())
    if environment not in _chains:
        _chains[environment] = [(model, list(model.objects.all())) for model in _CHAIN]
    return issuing


def make_certificate(agent: Agent, *, at: datetime | None = None) -> Certificate:
    """An active certificate of the agent, issued now (or `at`); a pending agent becomes active."""
    if not _has_chain():
        make_authorities()
    stock_pool()
    return issuance.issue(tenant_id=agent.tenant_id, agent_id=agent.id, actor=ACTOR, now=at or now())


def _has_chain() -> bool:
    """Whether the issuing CA is there, and no wrapping key is needed: `bootstrap()` is slow to ask."""
    is_wrapped = key_pool.storage() is KeyStorage.WRAPPED
    return not is_wrapped and CertificateAuthority.objects.filter(role=AuthorityRole.ISSUING).exists()


def make_intent(agent: Agent) -> Issuance:
    """An unsaved intent to certify the agent."""
    return Issuance(
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        serial_number=format_serial(new_serial(environments.current())),
        created_at=now(),
    )


def make_certified_agent(tenant: Tenant, **fields: Any) -> Agent:
    """An active agent with an active certificate."""
    agent = make_agent(tenant, **fields)
    make_certificate(agent)
    agent.refresh_from_db()
    return agent


def make_carded_agent(tenant: Tenant, **fields: Any) -> Agent:
    """An active, certified agent that publishes an A2A card."""
    wanted = {"agent_card": CARD, "metadata": {"permitted_actions": ["read", "pay"]}, **fields}
    return make_certified_agent(tenant, **wanted)


def make_revoked_certificate(tenant: Tenant, *, reason: str = "keyCompromise") -> Certificate:
    return revoke_certificate(make_certificate(make_agent(tenant)), reason=reason)


def revoke_certificate(
    certificate: Certificate, *, reason: str = "keyCompromise", at: datetime | None = None
) -> Certificate:
    about: dict[str, Any] = {"tenant_id": certificate.tenant_id, "certificate_id": certificate.id}
    return services.revoke(**about, reason=reason, actor=ACTOR, now=at or now())


def renew_certificate(certificate: Certificate, *, at: datetime | None = None) -> Certificate:
    about: dict[str, Any] = {"tenant_id": certificate.tenant_id, "certificate_id": certificate.id}
    return issuance.renew(**about, actor=ACTOR, now=at or now())


def retire_agent(agent: Agent, *, at: datetime | None = None) -> Agent:
    """Retire the agent, which revokes its certificate."""
    return services.retire_agent(
        tenant_id=agent.tenant_id, agent_id=agent.id, reason="done", actor=ACTOR, now=at or now()
    )


def suspend_agent(agent: Agent, *, at: datetime | None = None) -> Agent:
    """Suspend the agent, which puts its certificate on hold."""
    return services.suspend_agent(
        tenant_id=agent.tenant_id, agent_id=agent.id, reason="under review", actor=ACTOR, now=at or now()
    )


def reinstate_agent(agent: Agent, *, at: datetime | None = None) -> Agent:
    return services.reinstate_agent(
        may_undo_stop=True,
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        reason="cause fixed",
        actor=ACTOR,
        now=at or now(),
    )


def make_held_certificate(tenant: Tenant, **fields: Any) -> Certificate:
    """A certificate on hold, whose agent is suspended."""
    certificate = make_certificate(make_agent(tenant, **fields))
    suspend_agent(certificate.agent)
    return Certificate.objects.get(id=certificate.id)


def make_overdue_certificate(tenant: Tenant) -> Certificate:
    """A certificate past its end that no sweep has seen."""
    certificate = make_certificate(make_agent(tenant))
    make_past_end(certificate)
    return certificate


def make_past_end(certificate: Certificate) -> None:
    """Let the certificate's row end two days ago."""
    past = now() - timedelta(days=2)
    Certificate.objects.filter(id=certificate.id).update(issued_at=past - timedelta(days=1), expires_at=past)
    certificate.refresh_from_db()


def make_expired_certificate(tenant: Tenant) -> Certificate:
    """A certificate past its end, marked so."""
    certificate = make_overdue_certificate(tenant)
    services.expire_due(now=now())
    certificate.refresh_from_db()
    return certificate


def stock_pool(count: int = 1) -> None:
    """Give the pool keys that no row of the current test uses."""
    keys = _keys[environments.current()]
    used = set(
        Certificate.objects.filter(kms_key_arn__in=[key.uri for key in keys]).values_list(
            "kms_key_arn", flat=True
        )
    )
    used |= set(PooledKey.objects.values_list("key_uri", flat=True))
    free = [key for key in keys if key.uri not in used][:count]
    while len(free) < count:
        free.append(make_agent_key(len(keys)))
        keys.append(free[-1])
    for key in free:
        key_pool.put_back(key=key, now=now())


def forget_keys() -> None:
    """For a test that destroys keys which no row names: later tests get new ones."""
    _chains.clear()
    _keys.clear()


@contextmanager
def lost() -> Iterator[None]:
    """What happens inside the block is gone from the database afterwards, as after a restore."""
    with environments.atomic():
        yield
        connections[environments.current().alias].set_rollback(True)
