"""Put scope violations on record: as an event of the agent and in the audit log, once, not once a retry.

A token shows that its holder acts for the agent: what it asks against the scope is recorded for each route
and action. A serial number is no secret: whatever is asked with it, one event of its agent is recorded in
each window of strikes, so that nobody stops an agent by asking in its name.
"""

import hashlib
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec
from django.conf import settings

from agents.errors import AgentNotActive, AgentNotFound
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.identifiers import new_id
from compliance.gateway.deciding.refusals import ScopeViolated
from compliance.gateway.deciding.requests import DecisionRequest
from compliance.gateway.models import GatewayCredential, GatewayViolation
from compliance.stores import sql
from events import services as events
from events.ingest.event_input import EventInput
from events.models import ActionType

KEPT: Final = timedelta(days=1)
SWEPT_AT_ONCE: Final = 100
_TABLE: Final = GatewayViolation._meta.db_table
# Of two gateways at once, the second waits for the first's transaction and then finds a fresh row.
_CLAIM: Final = f"""
INSERT INTO {_TABLE} AS known (id, digest, recorded_at) VALUES (%(id)s, %(digest)s, %(now)s)
ON CONFLICT (digest) DO UPDATE SET recorded_at = EXCLUDED.recorded_at WHERE known.recorded_at < %(before)s
RETURNING id
"""  # noqa: S608  (only the name of a table is put into the text)
_SWEEP: Final = f"""
DELETE FROM {_TABLE} WHERE id IN (
    SELECT id FROM {_TABLE} WHERE recorded_at < %s ORDER BY recorded_at LIMIT %s FOR UPDATE SKIP LOCKED
)
"""  # noqa: S608


def recorded(
    violation: ScopeViolated, *, request: DecisionRequest, kind: GatewayCredential, route: str, action: str
) -> ScopeViolated:
    """Record a violation unless the like was recorded within the window of strikes; return it.

    The event is of the agent's own tenant only: a gateway of another tenant gets an audit entry of its own.
    Raises: Django's errors.
    """
    place = () if kind is GatewayCredential.SERIAL else (route, action)
    # Each tenant's gateway records for itself: a request at one hides nothing from another's records.
    parts = [str(violation.agent_id), str(request.tenant_id), *place]
    digest = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
    with environments.atomic():
        if not _claimed(digest, request):
            return violation
        facts = _facts(request, kind, route, action)
        event_id = _event(violation, facts, request) if violation.tenant_id == request.tenant_id else None
        auditlog.record(
            tenant_id=request.tenant_id,
            action=AuditAction.GATEWAY_SCOPE_VIOLATION,
            affected_id=violation.agent_id,
            description="A request outside the certificate's scope was refused at the gateway",
            metadata={"agent_id": str(violation.agent_id), "event_id": event_id, **facts},
            actor=Actor.api_key(request.key_id),
            now=request.now,
        )
    return violation


def _claimed(digest: str, request: DecisionRequest) -> bool:
    """Whether this call is the one that records; others wait here for it."""
    window = settings.HIGH_RISK_WINDOW
    named = {"id": new_id(), "digest": digest, "now": request.now, "before": request.now - window}
    if not sql.query(_CLAIM, named):
        return False
    sql.execute(_SWEEP, [request.now - max(KEPT, 2 * window), SWEPT_AT_ONCE])
    return True


def _facts(request: DecisionRequest, kind: GatewayCredential, route: str, action: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "source": "gateway",
        "action": action,
        "route": route or None,
        "credential": kind.value,
        "identity": "asserted" if kind is GatewayCredential.SERIAL else "proven",
    }
    if request.original is not None:
        facts |= {"method": request.original.method, "path": request.original.path}
    return facts


def _event(violation: ScopeViolated, facts: dict[str, Any], request: DecisionRequest) -> str | None:
    """The id of the agent's event; None for an agent that was stopped meanwhile, which takes none."""
    told = EventInput(
        agent_id=str(violation.agent_id),
        action_type=ActionType.UNAUTHORIZED_ACCESS_ATTEMPT.value,
        details=facts,
    )
    try:
        return _ingested(request.tenant_id, told, request)
    except (AgentNotActive, AgentNotFound):
        return None


def _ingested(tenant_id: UUID, told: EventInput, request: DecisionRequest) -> str:
    return str(events.ingest(tenant_id=tenant_id, event=told, now=request.now).id)
