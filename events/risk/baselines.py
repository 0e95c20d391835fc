"""Tenants' baselines: what their agents have in common, pooled from ordinary events.

A task pools low events and dismissed ones in the order of ids, an hour late, so that an attack under way
doesn't become ordinary for the tenant's other agents. Baselines and progress commit together: each event
counts once, or not at all if its tenant's pooling fails. Each process caches the baselines of the tenants
that it serves for a minute.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.core.identifiers import first_id_at
from compliance.core.json_values import from_stored
from compliance.stores import sql
from compliance.stores.sweeps import each
from events.models import BehaviorEvent, EventReview, ScorerProgress, TenantBaseline
from events.risk.scoring.contract import Event
from events.risk.scoring.habits.baseline import Baseline, decode_baseline, encode_baseline, pool
from events.risk.scoring.habits.state import StateUnreadable

NAME, DISMISSALS = "baselines", "dismissals"
DELAY = timedelta(hours=1)
FARTHEST_BACK = timedelta(days=1)
CHUNK = 5_000  # events of one step
CHUNK_BYTES = 16 * 1024 * 1024  # of their details; the step ends with the event that exceeds it
READ_TOGETHER = 200
RUN_SECONDS = 45.0  # after which a run begins no other step: the next one goes on
ASKED_EVERY = 60.0
KEPT_TENANTS = 500

_EVENTS, _REVIEWS = BehaviorEvent._meta.db_table, EventReview._meta.db_table
_BASELINES = TenantBaseline._meta.db_table
_LOW = f"""
SELECT id, tenant_id, agent_id::text, action_type, received_at, details::text FROM {_EVENTS} AS event
WHERE id >= %(low)s AND id < %(high)s AND risk_band = 'low' AND NOT EXISTS (
    SELECT FROM {_REVIEWS} AS said
    WHERE said.tenant_id = event.tenant_id AND said.event_id = event.id AND said.verdict = 'confirmed'
)
ORDER BY id LIMIT %(most)s
"""  # noqa: S608  (only names of tables are put into the text)
# Of consecutive equal reviews of an event, the first
_DISMISSED = f"""
SELECT said.id, event.tenant_id, event.agent_id::text, event.action_type, event.received_at,
    event.details::text
FROM {_REVIEWS} AS said JOIN {_EVENTS} AS event
    ON (event.tenant_id, event.id) = (said.tenant_id, said.event_id)
WHERE said.id >= %(low)s AND said.id < %(high)s AND said.verdict = 'dismissed' AND event.risk_band <> 'low'
    AND NOT EXISTS (
        SELECT FROM {_REVIEWS} AS other
        WHERE (other.tenant_id, other.event_id) = (said.tenant_id, said.event_id) AND (
            (other.number > said.number AND other.verdict <> 'dismissed')
            OR (other.number = said.number - 1 AND other.verdict = 'dismissed')
        )
    )
ORDER BY said.id LIMIT %(most)s
"""  # noqa: S608  (only names of tables are put into the text)
_READ = {NAME: _LOW, DISMISSALS: _DISMISSED}
_HELD = f"SELECT tenant_id, baseline FROM {_BASELINES} WHERE tenant_id = ANY(%s::uuid[])"  # noqa: S608
_PUT = f"""
INSERT INTO {_BASELINES} AS held (tenant_id, version, baseline)
SELECT given.tenant_id, 1, given.baseline
FROM unnest(%s::uuid[], %s::bytea[]) AS given (tenant_id, baseline) ORDER BY given.tenant_id
ON CONFLICT (tenant_id) DO UPDATE SET version = held.version + 1, baseline = excluded.baseline
"""  # noqa: S608  (only a table's name is put into the text)
_CHANGED = f"""
SELECT held.tenant_id, held.version, held.baseline
FROM unnest(%(ids)s::uuid[], %(versions)s::bigint[]) AS kept (tenant_id, version)
JOIN {_BASELINES} AS held ON held.tenant_id = kept.tenant_id AND held.version <> kept.version
"""  # noqa: S608  (only a table's name is put into the text)


class CachedBaseline(msgspec.Struct, frozen=True):
    """A tenant's baseline, if it has one, with its version and the time of the last look-up."""

    asked_at: float
    version: int = 0
    baseline: Baseline | None = None


_kept: BoundedCache[tuple[str, UUID], CachedBaseline] = BoundedCache(KEPT_TENANTS)


def of_tenants(tenant_ids: Collection[UUID], *, now: datetime) -> Mapping[UUID, Baseline]:
    """Return the baselines of those tenants that have one, at most a minute old."""
    at, environment = now.timestamp(), environments.current().value
    known = {name: _kept.get((environment, name)) or CachedBaseline(0.0) for name in tenant_ids}
    old = {name: one for name, one in known.items() if not one.asked_at <= at < one.asked_at + ASKED_EVERY}
    if old:
        newest = _asked(old, at)
        _kept.put_all({(environment, name): one for name, one in newest.items()})
        known |= newest
    return {name: one.baseline for name, one in known.items() if one.baseline is not None}


def pool_new(*, now: datetime, seconds: float = RUN_SECONDS) -> int:
    """Pool new low events and newly dismissed ones, for about so long; return how many. Safe to repeat."""
    until = time.monotonic() + seconds
    return sum(_pool_new(name, now, until) for name in _READ)


def _pool_new(name: str, now: datetime, until: float) -> int:
    total = 0
    while True:
        with environments.atomic():
            pooled, is_more = _next_chunk(name, now)
        total += pooled
        if not is_more or time.monotonic() >= until:
            return total


def _next_chunk(name: str, now: datetime) -> tuple[int, bool]:
    """Pool a step's events; return how many, none while another process pools, and whether there are more."""
    earliest, settled = first_id_at(now - FARTHEST_BACK), first_id_at(now - DELAY)
    for kept in _READ:
        ScorerProgress.objects.get_or_create(name=kept, defaults={"upto": earliest})
    # Both rows, so that one process at a time changes baselines
    locked = ScorerProgress.objects.select_for_update(skip_locked=True).filter(name__in=_READ).in_bulk()
    if len(locked) < len(_READ) or locked[name].upto >= settled:
        return 0, False
    progress = locked[name]
    rows, is_more = _read(name, max(progress.upto, earliest), settled)
    _pool(rows, trusted=name == DISMISSALS)
    progress.upto = UUID(int=rows[-1][0].int + 1) if is_more else settled
    progress.save(update_fields=["upto"])
    return len(rows), is_more


def _read(name: str, low: UUID, high: UUID) -> tuple[list[Any], bool]:
    """Return the events of the next step, and whether it ended before `high`."""
    rows: list[Any] = []
    held = 0
    asked = {"low": low, "high": high, "most": CHUNK}
    with closing(sql.streamed(_READ[name], asked, most=READ_TOGETHER)) as parts:
        for part in parts:
            for row in part:
                rows.append(row)
                held += len(row[-1])
                if held > CHUNK_BYTES:
                    return rows, True
    return rows, len(rows) == CHUNK


def _pool(rows: list[Any], *, trusted: bool) -> None:
    by_tenant: defaultdict[UUID, list[Any]] = defaultdict(list)
    for row in rows:
        by_tenant[row[1]].append(row)
    tenant_ids = sorted(by_tenant)
    held = dict(sql.query(_HELD, [tenant_ids])) if rows else {}
    pooled: dict[UUID, bytes] = {}

    def pool_tenant(tenant_id: UUID) -> int:
        pooled[tenant_id] = _pooled(held.get(tenant_id), by_tenant[tenant_id], trusted=trusted)
        return len(by_tenant[tenant_id])

    each(tenant_ids, pool_tenant)
    if pooled:
        sql.execute(_PUT, [list(pooled), list(pooled.values())])


def _pooled(packed: Any, events: list[Any], *, trusted: bool) -> bytes:
    """Return a tenant's baseline, packed, after these events."""
    baseline = Baseline() if packed is None else _decoded(packed)
    for _, _, agent_id, action_type, received_at, details in events:
        event = Event(action_type, received_at.timestamp(), from_stored(details))
        pool(baseline, event, agent=agent_id, trusted=trusted)
    return encode_baseline(baseline)


def _asked(old: Mapping[UUID, CachedBaseline], at: float) -> dict[UUID, CachedBaseline]:
    found = {tenant_id: CachedBaseline(at, kept.version, kept.baseline) for tenant_id, kept in old.items()}
    asked = {"ids": list(old), "versions": [kept.version for kept in old.values()]}
    for tenant_id, version, packed in sql.query(_CHANGED, asked):
        found[tenant_id] = CachedBaseline(at, version, _decoded(packed))
    return found


def _decoded(packed: Any) -> Baseline:
    try:
        return decode_baseline(bytes(packed))
    except StateUnreadable:
        return Baseline()
