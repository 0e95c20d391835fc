"""Put scope violations on record: as an event of the agent and in the audit log, once, not once a retry.

Where the agent itself asks, an event is recorded for each route and action, and for a repeat after some
seconds. All else is asked in its name by somebody who saw its serial number or token: one event of the agent
in each window of strikes, so that nobody stops an agent by asking in its name.
"""

import hashlib
from datetime import timedelta
from typing import Any, Final

import msgspec
from django.conf import settings

from agents.errors import AgentNotActive, AgentNotFound
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.identifiers import new_id
from compliance.stores import sql
from events import services as events
from events.ingest.event_input import EventInput
from events.models import ActionType
from gateway.deciding.refusals import ScopeViolated
from gateway.deciding.requests import DecisionRequest
from gateway.models import GatewayCredential, GatewayViolation

KEPT: Final = timedelta(days=1)
SWEPT_AT_ONCE: Final = 100
REPEATED_AFTER: Final = timedelta(seconds=10)
"""When the same request of a proven agent counts again: longer than a client's retries at once."""
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
    """Record a violation unless the like was recorded a moment ago; return it.

    The event is of the agent's own tenant only: a gateway of another tenant gets an audit entry of its own.
    Raises: Django's errors.
    """
    place = (route, action) if violation.is_proven else ()
    # Each tenant's gateway records for itself: a request at one hides nothing from another's records.
    parts = [str(violation.agent_id), str(request.tenant_id), *place]
    digest = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()
    pause = REPEATED_AFTER if violation.is_proven else settings.HIGH_RISK_WINDOW
    claim = {"id": new_id(), "digest": digest, "now": request.now, "before": request.now - pause}
    with environments.atomic():
        if not sql.query(_CLAIM, claim):  # others wait here for the one that records
            return violation
        sql.execute(_SWEEP, [request.now - max(KEPT, 2 * settings.HIGH_RISK_WINDOW), SWEPT_AT_ONCE])
        facts: dict[str, Any] = {
            "source": "gateway",
            "action": action,
            "route": route or None,
            "credential": kind.value,
            "identity": "proven" if violation.is_proven else "asserted",
        }
        if request.original is not None:
            facts |= {"method": request.original.method, "path": request.original.path}
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


def _event(violation: ScopeViolated, facts: dict[str, Any], request: DecisionRequest) -> str | None:
    """The id of the agent's event; None for an agent that was stopped meanwhile, which takes none."""
    told = EventInput(str(violation.agent_id), ActionType.UNAUTHORIZED_ACCESS_ATTEMPT.value, details=facts)
    try:
        return str(events.ingest(tenant_id=request.tenant_id, event=told, now=request.now).id)
    except (AgentNotActive, AgentNotFound):
        return None
