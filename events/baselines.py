"""What each tenant's agents have in common: pooled from low events, it weighs most for agents still young.

A task reads the events in the order of ids, an hour behind, so that an attack under way is not made ordinary
for the tenant's other agents; and as far behind the officers' dismissals, which vouch for events of other
bands. Baselines and how far it has come commit together: each event counts once. A process keeps the
baselines of the tenants that it serves, and asks once a minute for newer ones.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import orjson

from compliance import environments, sql
from compliance.bounded import Bounded
from compliance.identifiers import first_id_at
from events.models import BehaviorEvent, EventReview, ScorerProgress, TenantBaseline
from events.scoring import (
    Baseline,
    Event,
    StateUnreadable,
    decode_baseline,
    encode_baseline,
    pool,
)

NAME, DISMISSALS = "baselines", "dismissals"
DELAY = timedelta(hours=1)
FARTHEST_BACK = timedelta(days=1)
CHUNK = 5_000
CHUNKS = 20
"""Events of one step, and most steps of one run: 1,600 a second, at one run a minute."""
ASKED_EVERY = 60.0
KEPT_TENANTS = 500

_EVENTS, _REVIEWS, _BASELINES = (
    model._meta.db_table for model in (BehaviorEvent, EventReview, TenantBaseline)
)
_LOW = f"""
SELECT id, tenant_id, action_type, received_at, details::text FROM {_EVENTS} AS event
WHERE id >= %(low)s AND id < %(high)s AND risk_band = 'low' AND NOT EXISTS (
    SELECT FROM {_REVIEWS} WHERE event_id = event.id AND verdict = 'confirmed'
)
ORDER BY id LIMIT %(most)s
"""  # noqa: S608  (only names of tables are put into the text)
# Of an event's reviews that say the same one after another, the first.
_DISMISSED = f"""
SELECT said.id, event.tenant_id, event.action_type, event.received_at, event.details::text
FROM {_REVIEWS} AS said JOIN {_EVENTS} AS event ON event.id = said.event_id
WHERE said.id >= %(low)s AND said.id < %(high)s AND said.verdict = 'dismissed' AND event.risk_band <> 'low'
    AND NOT EXISTS (
        SELECT FROM {_REVIEWS} AS other WHERE other.event_id = said.event_id AND (
            (other.number > said.number AND other.verdict <> 'dismissed')
            OR (other.number = said.number - 1 AND other.verdict = 'dismissed')
        )
    )
ORDER BY said.id LIMIT %(most)s
"""  # noqa: S608  (only names of tables are put into the text)
_READ = {NAME: _LOW, DISMISSALS: _DISMISSED}
_PUT = f"""
INSERT INTO {_BASELINES} AS held (tenant_id, version, baseline) VALUES (%s, 1, %s)
ON CONFLICT (tenant_id) DO UPDATE SET version = held.version + 1, baseline = excluded.baseline
"""  # noqa: S608  (only a table's name is put into the text)
_CHANGED = f"""
SELECT held.tenant_id, held.version, held.baseline
FROM unnest(%(ids)s::uuid[], %(versions)s::bigint[]) AS kept (tenant_id, version)
JOIN {_BASELINES} AS held ON held.tenant_id = kept.tenant_id AND held.version <> kept.version
"""  # noqa: S608  (only a table's name is put into the text)


class Kept(msgspec.Struct, frozen=True):
    """A tenant's baseline, None if it has none, its version, and when it was last asked for."""

    asked_at: float
    version: int = 0
    baseline: Baseline | None = None


_kept: Bounded[tuple[str, UUID], Kept] = Bounded(KEPT_TENANTS)


def of_tenants(tenant_ids: Collection[UUID], *, now: datetime) -> Mapping[UUID, Baseline]:
    """The baselines of those tenants that have one, at most a minute old."""
    at, environment = now.timestamp(), environments.current().value
    known = {tenant_id: _kept.get((environment, tenant_id)) for tenant_id in tenant_ids}
    old = {
        tenant_id: kept or Kept(0.0)
        for tenant_id, kept in known.items()
        if kept is None or not kept.asked_at <= at < kept.asked_at + ASKED_EVERY
    }
    found = {tenant_id: kept for tenant_id, kept in known.items() if kept is not None}
    for tenant_id, kept in _asked(old, at).items() if old else ():
        _kept.put((environment, tenant_id), kept)
        found[tenant_id] = kept
    return {tenant_id: kept.baseline for tenant_id, kept in found.items() if kept.baseline is not None}


def pool_new(*, now: datetime) -> int:
    """Pool what is new since the last time into its tenants' baselines; how many events. Safe to repeat.

    That is low events, and those that officers dismissed: they are known to be ordinary.
    """
    return sum(_pool_new(name, now) for name in _READ)


def _pool_new(name: str, now: datetime) -> int:
    total = 0
    for _ in range(CHUNKS):
        with environments.atomic():
            pooled = _next_chunk(name, now)
        total += pooled
        if pooled < CHUNK:
            break
    return total


def _next_chunk(name: str, now: datetime) -> int:
    """Pool at most `CHUNK` events and go on behind them; none while somebody else does."""
    earliest, settled = first_id_at(now - FARTHEST_BACK), first_id_at(now - DELAY)
    for kept in _READ:
        ScorerProgress.objects.get_or_create(name=kept, defaults={"upto": earliest})
    # Both at once: whoever pools has all baselines to itself
    locked = ScorerProgress.objects.select_for_update(skip_locked=True).filter(name__in=_READ).in_bulk()
    if len(locked) < len(_READ) or locked[name].upto >= settled:
        return 0
    progress = locked[name]
    low = max(progress.upto, earliest)
    rows = sql.query(_READ[name], {"low": low, "high": settled, "most": CHUNK})
    _pool(rows, trusted=name == DISMISSALS)
    progress.upto = UUID(int=rows[-1][0].int + 1) if len(rows) == CHUNK else settled
    progress.save(update_fields=["upto"])
    return len(rows)


def _pool(rows: list[Any], *, trusted: bool) -> None:
    """Fold events into their tenants' baselines."""
    by_tenant: defaultdict[UUID, list[Any]] = defaultdict(list)
    for row in rows:
        by_tenant[row[1]].append(row)
    stored = TenantBaseline.objects.in_bulk(list(by_tenant))
    for tenant_id, events in sorted(by_tenant.items()):
        baseline = _decoded(stored[tenant_id].baseline) if tenant_id in stored else Baseline()
        for _, _, action_type, received_at, details in events:
            event = Event(action_type, received_at.timestamp(), orjson.loads(details))
            pool(baseline, event, trusted=trusted)
        sql.execute(_PUT, [tenant_id, encode_baseline(baseline)])


def _asked(old: Mapping[UUID, Kept], at: float) -> dict[UUID, Kept]:
    """What has become of baselines, read only where there is a newer one."""
    found = {tenant_id: Kept(at, kept.version, kept.baseline) for tenant_id, kept in old.items()}
    asked = {"ids": list(old), "versions": [kept.version for kept in old.values()]}
    for tenant_id, version, packed in sql.query(_CHANGED, asked):
        found[tenant_id] = Kept(at, version, _decoded(packed))
    return found


def _decoded(packed: Any) -> Baseline:
    """The baseline; an empty one in place of another layout's."""
    try:
        return decode_baseline(bytes(packed))
    except StateUnreadable:
        return Baseline()
