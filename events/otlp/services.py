"""Record spans as events, each once, and manage the names by which spans say whose they are."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from agents.models import Agent, parse_did
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.api.rest.parsers import check_value
from compliance.core import environments
from compliance.core.errors import Busy, Invalid, ServiceError, Unavailable
from compliance.core.identifiers import canonical_id, first_id_at, moment_of
from compliance.stores import sql
from events import services as events
from events.ingest.event_input import MAX_BATCH, MOST_AHEAD, EventInput, read_event
from events.ingest.storage import ScoredEvent
from events.otlp.mapping import AGENT_ID, Name, SpanEvent, events_of
from events.otlp.models import CountedSpan, NameMapped, NameSource, TooManyNames, TracedName
from events.otlp.reading import TracedSpan
from tenancy.models import Tenant

log = logging.getLogger(__name__)

KEPT: Final = timedelta(days=7)
"""How long a span is known to have been counted; older ones are refused."""
SLACK: Final = timedelta(hours=1)
FORGOTTEN_AT_ONCE: Final = timedelta(minutes=10)
MOST_MAPPED, MOST_UNKNOWN = 1_000, 100
UNKNOWN_AGENT: Final = "No agent: set the resource attribute agentid.agent.id, or map a name of the spans"
UNUSABLE: Final = "A span needs a trace id, a span id and an end"
Pending = list[tuple[list[UUID], EventInput]]
"""Events that are not stored yet, each with the ids of its spans."""

# Sorted, so that two requests with the same spans wait for each other instead of for both
_CLAIM = f"""
INSERT INTO {CountedSpan._meta.db_table} (id, tenant_id)
SELECT span, %(tenant)s FROM unnest(%(spans)s::uuid[]) AS span ORDER BY span
ON CONFLICT DO NOTHING RETURNING id
"""  # noqa: S608  (only a table's name is put into the text)


def record(
    *,
    tenant_id: UUID,
    spans: Sequence[TracedSpan],
    charge: Callable[[int], None],
    clock: Callable[[], datetime],
) -> Counter[str]:
    """Record an export's spans as events; return how many were refused by reason. Unknown names are noted.

    `charge` is called with the number of events before the first is stored. The events commit in portions,
    each of a moment of its own. Raises: TooLarge, Unavailable, Busy, Django's errors, and what `charge`
    raises; sending all of it again is then safe.
    """
    mapped: Mapping[Name, str] = {}
    if any(span.resource.get(AGENT_ID) is None for span in spans):
        rows = TracedName.objects.for_tenant(tenant_id).mapped().values_list("source", "name", "agent_id")
        mapped = {(source, name): str(agent_id) for source, name, agent_id in rows}
    found, unusable = events_of(spans, tenant_id=tenant_id, mapped=mapped)
    charge(len(found))
    agents = [_agent_of(event, mapped) for event in found]
    left, refused = _read(found, agents, clock())
    while left:
        left, more = _store_some(tenant_id, left, clock())
        refused += more
    if unusable:
        refused[UNUSABLE] += unusable
    try:
        _note_unknown(tenant_id, found, agents, clock())
    except sql.OUTAGES as error:
        log.warning("Names without an agent were not noted: %s", sql.error_name(error))
    return refused


def forget(*, now: datetime) -> int:
    """Forget spans that would be refused by now; return how many."""
    past, total = first_id_at(now - KEPT - SLACK), 0
    while (first := CountedSpan.objects.order_by("id").first()) and first.id < past:
        step = min(first_id_at(moment_of(first.id) + FORGOTTEN_AT_ONCE), past)
        total += CountedSpan.objects.filter(id__lt=step).delete()[0]
    return total


def create(
    *, tenant_id: UUID, source: str, name: str, agent_id: Any, actor: Actor, now: datetime
) -> TracedName:
    """Have a name stand for an agent. Raises: AgentNotFound, NameMapped, TooManyNames."""
    with environments.atomic():
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
        rows = TracedName.objects.for_tenant(tenant_id)
        row = rows.filter(source=source, name=name).first()
        if row is not None and row.agent_id is not None:
            raise NameMapped()
        if rows.mapped().count() >= MOST_MAPPED:
            raise TooManyNames(f"A tenant can map at most {MOST_MAPPED} names")
        row = row or TracedName(tenant_id=tenant_id, source=source, name=name, seen_at=now)
        row.agent = agent
        row.save()
        _record(row, AuditAction.TRACED_NAME_MAPPED, f"Spans of {name} are agent {agent.name}'s", actor, now)
    return row


def delete(*, tenant_id: UUID, name_id: Any, actor: Actor, now: datetime) -> None:
    """Have a name stand for no agent any more; it is listed again when it is next met."""
    with environments.atomic():
        row = TracedName.objects.for_tenant(tenant_id).locked().find(name_id)
        _record(row, AuditAction.TRACED_NAME_REMOVED, f"Spans of {row.name} are no agent's", actor, now)
        row.delete()


def _agent_of(event: SpanEvent, mapped: Mapping[Name, str]) -> str | None:
    """Return the agent of an event, as its resource states it or by the best of its names.

    What is stated is a UUID or a DID of this environment; what is neither is refused as it stands.
    """
    if event.agent_id is None:
        return next((mapped[name] for name in event.names if name in mapped), None)
    did = parse_did(event.agent_id)
    if did is not None and did.environment is environments.current():
        return str(did.agent_id)
    return canonical_id(event.agent_id) or event.agent_id


def _read(
    found: Sequence[SpanEvent], agents: Sequence[str | None], now: datetime
) -> tuple[Pending, Counter[str]]:
    """Return the events to store, and how many were refused by reason."""
    pending: Pending = []
    refused: Counter[str] = Counter()
    for event, agent_id in zip(found, agents, strict=True):
        try:
            if agent_id is None:
                raise Invalid(UNKNOWN_AGENT)
            if not now - KEPT <= event.ended_at <= now + MOST_AHEAD:
                raise Invalid(f"A span must have ended in the last {KEPT.days} days")
            check_value(event.fields)
            pending.append((event.spans, read_event({**event.fields, "agent_id": agent_id}, now=now)))
        except ServiceError as error:
            refused[error.message] += 1
    return pending, refused


def _store_some(tenant_id: UUID, pending: Pending, now: datetime) -> tuple[Pending, Counter[str]]:
    """Store the next events, unless a span of theirs was counted before; return what is left, and refusals.

    A span is claimed in the transaction of its event: of requests that bring it at the same time the later
    one waits for the earlier one's commit. Nothing of a span counted before reaches the scorer.
    """
    portion, left = pending[:MAX_BATCH], pending[MAX_BATCH:]
    refused: Counter[str] = Counter()
    with environments.atomic():
        asked = [span for spans, _ in portion for span in spans]
        claimed = {row[0] for row in sql.query(_CLAIM, {"tenant": tenant_id, "spans": asked})}
        new = [(spans, event) for spans, event in portion if claimed.issuperset(spans)]
        outcomes = events.ingest_batch(tenant_id=tenant_id, inputs=[event for _, event in new], now=now)
        unstored = [
            (one, outcome)
            for one, outcome in zip(new, outcomes, strict=True)
            if not isinstance(outcome, ScoredEvent)
        ]
        if unstored:
            unclaimed = [span for (spans, _), _ in unstored for span in spans]
            CountedSpan.objects.filter(tenant_id=tenant_id, id__in=unclaimed).delete()
    for _, outcome in unstored:
        if isinstance(outcome, Busy | Unavailable):
            raise outcome
        if outcome is not None:
            refused[outcome.message] += 1
    return [one for one, outcome in unstored if outcome is None] + left, refused


def _note_unknown(
    tenant_id: UUID, found: Sequence[SpanEvent], agents: Sequence[str | None], now: datetime
) -> None:
    """List names without an agent, of which those met last are kept."""
    names = {
        name: None
        for event, agent in zip(found, agents, strict=True)
        if agent is None
        for name in event.names
        # Some libraries make an id for each run.
        if name[0] != NameSource.AGENT_ID or len(event.names) == 1
    }
    if not names:
        return
    rows = [
        TracedName(tenant_id=tenant_id, source=source, name=name, seen_at=now)
        for source, name in list(names)[:MOST_UNKNOWN]
    ]
    with environments.atomic():
        # Requests at the same time would lock the rows in different orders.
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        TracedName.objects.bulk_create(
            rows,
            update_conflicts=True,
            update_fields=["seen_at"],
            unique_fields=["tenant", "source", "name"],
        )
        unknown = TracedName.objects.for_tenant(tenant_id).filter(agent=None).order_by("-seen_at", "-id")
        unknown.filter(pk__in=[row.pk for row in unknown[MOST_UNKNOWN:]]).delete()


def _record(row: TracedName, action: AuditAction, description: str, actor: Actor, now: datetime) -> None:
    metadata = {"source": row.source, "name": row.name, "agent_id": str(row.agent_id)}
    auditlog.record(of=row, action=action, description=description, metadata=metadata, actor=actor, now=now)
