"""Entries, sealed and signed logs, for the tests of every room."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from auditlog import services
from auditlog.models import AuditEntry, LogKey, SignedHead
from auditlog.sealing import keys, sealer
from auditlog.sealing.tree import latest_checkpoint
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.observing import correlation

ACTOR = Actor.system("tests")

_log_keys: Final[dict[Environment, LogKey]] = {}


def make_entries(count: int = 1, *, at: datetime | None = None) -> list[AuditEntry]:
    """Record entries of a tenant that is nowhere else."""
    tenant_id, moment = new_id(), at or now()
    return [
        services.record(tenant_id=tenant_id, action=AuditAction.AGENT_UPDATED, actor=ACTOR, now=moment)
        for _ in range(count)
    ]


def make_entry(tenant_id: UUID | None = None, **fields: Any) -> AuditEntry:
    """Record an act of a person that says something in every part."""
    given: dict[str, Any] = {
        "action": AuditAction.DELEGATION_ISSUED,
        "affected_id": "agent",
        "description": "for Grace",
        "metadata": {"chain": [{"sub": "grace@example.com", "type": "human"}]},
        "actor": Actor.person(UUID(int=7)),
        "now": now(),
    }
    return services.record(tenant_id=tenant_id or new_id(), **(given | fields))


def make_log_key(*, at: datetime | None = None) -> LogKey:
    """Return the key that signs the current environment's log; generated once in a test run, as that is slow.

    A test that destroys keys calls `keys.bootstrap()` instead.
    """
    moment = at or now()
    known = _log_keys.get(environments.current())
    if known and not LogKey.objects.exists():
        row = LogKey(
            name=keys.origin(),
            public_key=known.public_key,
            key_uri=known.key_uri,
            created_at=moment,
            active_from=moment,
        )
        with environments.atomic():
            keys.add(row, actor=ACTOR, now=moment)
    key = keys.bootstrap(actor=ACTOR, now=moment)
    _log_keys.setdefault(environments.current(), key)
    return key


def forget_keys() -> None:
    """For a test that destroys keys which no row names: later tests get new ones."""
    _log_keys.clear()


def seal_and_sign(*, at: datetime | None = None) -> SignedHead:
    """Seal all that is queued, sign the head, and return the newest checkpoint."""
    make_log_key(at=at)
    sealer.seal_all()
    sealer.sign_head(now=at or now())
    found = latest_checkpoint()
    assert found is not None
    return found


def facts_of(entry: AuditEntry) -> dict[str, Any]:
    """The metadata without the ids of the request that caused the entry, which must be well-formed."""
    facts = dict(entry.metadata or {})
    if services.REQUEST_ID in facts:
        assert correlation.is_request_id(facts.pop(services.REQUEST_ID))
        assert correlation.parse_traceparent(f"00-{facts.pop(services.TRACE_ID)}-{'1' * 16}-00")
    return facts
