"""What a replay reads of a tenant: its events in order of receipt, and what people and the service did.

Everything is read in bounded pieces by statements that write nothing.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from compliance.core.identifiers import parse_id
from compliance.stores import sql
from events.ingest.reactions import AUTO_REVOCATION
from events.models import BehaviorEvent, EventReview
from events.risk.scoring.contract import ScoreReason

CHUNK, CHUNK_WITH_DETAILS = 5_000, 200  # rows read at once; details may have a megabyte each
EVER = datetime(2000, 1, 1, tzinfo=UTC)

_reasons = msgspec.json.Decoder(list[ScoreReason])
_EVENTS = BehaviorEvent._meta.db_table
_READ = """
SELECT id, agent_id, action_type, received_at, risk_score, model_version,
       CASE WHEN risk_score >= %(least)s THEN reasons::text END, {details} FROM {table}
WHERE tenant_id = %(tenant)s AND id > %(after)s AND id < %(before)s {condition} ORDER BY id
"""
_STRIKES = _READ.format(table=_EVENTS, details="NULL", condition="AND risk_score >= %(least)s")
_ALL = _READ.format(table=_EVENTS, details="details::text", condition="")
_NAMED = f"""
SELECT id, agent_id::text, action_type, received_at, details::text FROM {_EVENTS}
WHERE id >= %(first)s AND id <= %(last)s AND id = ANY(%(ids)s::uuid[]) ORDER BY id
"""  # noqa: S608  (only a table's name is put into the text)


class StoredEvent(NamedTuple):
    """An event's row; `reasons` by name if it scored enough, `details` as JSON if they were asked for."""

    id: UUID
    agent_id: UUID
    action_type: str
    received_at: datetime
    score: float
    model_version: str
    reasons: list[str]
    details: str | None


class RecordedStop(msgspec.Struct, frozen=True):
    """A revocation that the service made by itself, as its audit entry tells it."""

    agent_id: UUID
    at: datetime
    event_id: UUID
    words: str


class Lives(NamedTuple):
    """When each agent was reinstated, in order. A new life begins there, in which old strikes don't count."""

    reinstated: dict[UUID, list[datetime]]

    def at(self, agent_id: UUID, moment: datetime) -> int:
        """Return the number of the agent's life at that moment, from 0."""
        return bisect_left(self.reinstated.get(agent_id, ()), moment)


def stream(
    tenant_id: UUID, *, after: UUID, before: UUID, least: float, with_details: bool
) -> Generator[list[StoredEvent], None, None]:
    """Yield events with ids between two; without details only those that score at least `least`."""
    asked = {"tenant": tenant_id, "after": after, "before": before, "least": least}
    statement, most = (_ALL, CHUNK_WITH_DETAILS) if with_details else (_STRIKES, CHUNK)
    with closing(sql.streamed(statement, asked, most=most)) as pieces:
        for rows in pieces:
            found: list[StoredEvent] = []
            for row in rows:
                names = [one.name for one in _reasons.decode(row[-2])] if row[-2] else []
                found.append(StoredEvent._make((*row[:-2], names, row[-1])))
            yield found


def named(ids: Sequence[UUID]) -> Iterator[tuple[UUID, str, str, datetime, str]]:
    """Yield id, agent, action type, time of receipt and details of events, given in order of their ids."""
    for start in range(0, len(ids), CHUNK_WITH_DETAILS):
        some = ids[start : start + CHUNK_WITH_DETAILS]
        yield from sql.query(_NAMED, {"first": some[0], "last": some[-1], "ids": sql.array(some)})


def reviews(tenant_id: UUID, *, before: datetime) -> list[EventReview]:
    """Return the officers' reviews until then in the order of time."""
    said = EventReview.objects.filter(tenant_id=tenant_id, reviewed_at__lt=before)
    return list(said.order_by("reviewed_at", "id"))


def lives(tenant_id: UUID) -> Lives:
    found: defaultdict[UUID, list[datetime]] = defaultdict(list)
    for entry in _entries(tenant_id, AuditAction.AGENT_REINSTATED):
        if (entry.metadata or {}).get("strikes_cleared") == 0:
            continue  # strikes of a life go on after a suspension by a person
        found[UUID(entry.affected_id)].append(entry.created_at)
    return Lives(dict(found))


def recorded_stops(tenant_id: UUID, *, since: datetime | None, until: datetime) -> list[RecordedStop]:
    """Return the tenant's automatic revocations of [since, until) that halted their agents, in order."""
    breaches, halts = (
        _entries(tenant_id, action).filter(
            actor_id=AUTO_REVOCATION.id, created_at__gte=since or EVER, created_at__lt=until
        )
        for action in (AuditAction.AGENT_HIGH_RISK, AuditAction.AGENT_SUSPENDED)
    )
    halted = set(halts.values_list("affected_id", "created_at"))
    return [
        RecordedStop(UUID(entry.affected_id), entry.created_at, event_id, entry.description or "")
        for entry in breaches
        if (entry.affected_id, entry.created_at) in halted
        and (event_id := parse_id((entry.metadata or {}).get("event_id"))) is not None
    ]


def _entries(tenant_id: UUID, action: AuditAction) -> Any:
    return AuditEntry.objects.for_tenant(tenant_id).of_type(action).order_by("created_at", "id")
