"""Tenants' baselines: what their agents have in common, pooled from ordinary events.

A task pools low events and dismissed ones in the order of ids, an hour late, so that an attack under way
doesn't become ordinary for the tenant's other agents. How surprising its agents' events are is summed up
from their states. Baselines and progress commit together: each event
counts once, or not at all if its tenant's pooling fails. Each process caches the baselines of the tenants
that it serves for a minute.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from agents.models import Agent
from agents.querysets import AgentQuerySet
from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.core.identifiers import first_id_at
from compliance.core.json_values import from_stored
from compliance.stores import sql
from compliance.stores.sweeps import each
from events.models import BehaviorEvent, EventReview, ScorerProgress, TenantBaseline
from events.risk import snapshots, state_cache
from events.risk.scoring.contract import Event
from events.risk.scoring.marked import IsCommon
from events.risk.scoring.state import (
    AgentState,
    Baseline,
    StateUnreadable,
    decode_baseline,
    encode_baseline,
    pool,
    sum_up_surprises,
)
from events.risk.scoring.tables import digest

NAME, DISMISSALS = "baselines", "dismissals"
DELAY = timedelta(hours=1)
FARTHEST_BACK = timedelta(days=1)
CHUNK = 200  # events of one step, whose details may have a megabyte each
RUN_SECONDS = 45.0  # after which a run begins no other step: the next one goes on
ASKED_EVERY = 60.0
KEPT_TENANTS = 500
MOST_SUMMED_UP = 100  # agents of a tenant whose surprises are summed up

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
_kept: BoundedCache[tuple[str, UUID], tuple[float, Baseline | None]] = BoundedCache(KEPT_TENANTS)


def of_tenants(tenant_ids: Collection[UUID], *, now: datetime) -> Mapping[UUID, Baseline]:
    """Return the baselines of those tenants that have one, at most a minute old."""
    at, environment = now.timestamp(), environments.current().value
    known = {name: _kept.get((environment, name)) for name in tenant_ids}
    old = [name for name, kept in known.items() if kept is None or not kept[0] <= at < kept[0] + ASKED_EVERY]
    if old:
        held = {name: _decoded(packed) for name, packed in sql.query(_HELD, [old])}
        known |= {name: (at, held.get(name)) for name in old}
        _kept.put_all({(environment, name): (at, held.get(name)) for name in old})
    return {name: kept[1] for name, kept in known.items() if kept is not None and kept[1] is not None}


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
    asked = {"low": max(progress.upto, earliest), "high": settled, "most": CHUNK}
    rows = sql.query(_READ[name], asked)
    is_more = len(rows) == CHUNK
    _pool(rows, now, trusted=name == DISMISSALS)
    progress.upto = UUID(int=rows[-1][0].int + 1) if is_more else settled
    progress.save(update_fields=["upto"])
    return len(rows), is_more


def _pool(rows: list[Any], now: datetime, *, trusted: bool) -> None:
    by_tenant: defaultdict[UUID, list[Any]] = defaultdict(list)
    for row in rows:
        by_tenant[row[1]].append(row)
    tenant_ids = sorted(by_tenant)
    held = dict(sql.query(_HELD, [tenant_ids])) if rows else {}
    pooled: dict[UUID, bytes] = {}

    def pool_tenant(tenant_id: UUID) -> int:
        baseline = _decoded(held[tenant_id]) if tenant_id in held else Baseline()
        for _, _, agent_id, action_type, received_at, details in by_tenant[tenant_id]:
            event = Event(action_type, received_at.timestamp(), from_stored(details))
            pool(baseline, event, agent=agent_id, trusted=trusted)
        agents = Agent.objects.for_tenant(tenant_id)
        sum_up_surprises(baseline, _states_of(agents, MOST_SUMMED_UP), now.timestamp())
        pooled[tenant_id] = encode_baseline(baseline)
        return len(by_tenant[tenant_id])

    each(tenant_ids, pool_tenant)
    if pooled:
        sql.execute(_PUT, [list(pooled), list(pooled.values())])


def _decoded(packed: Any) -> Baseline:
    try:
        return decode_baseline(bytes(packed))
    except StateUnreadable:
        return Baseline()


MOST_AGENTS = 1_000  # most other agents whose places are asked for


def known_beside(agent: Agent, *, now: datetime) -> IsCommon:
    """Return a test of whether `agent`'s tenant knows a place: by its baseline, or by another agent's habits.

    A baseline knows what two agents have named, so a missed attack on one doesn't vouch for itself.
    """
    at = now.timestamp()
    others = Agent.objects.for_tenant(agent.tenant_id).exclude(id=agent.id)
    known: list[AgentState | Baseline] = [*_states_of(others, MOST_AGENTS)]
    known += of_tenants([agent.tenant_id], now=now).values()

    def is_common(name: str) -> bool:
        place = digest(name)
        return any(
            table.knows(place, one.fading(at)) for one in known for table in (one.destinations, one.hosts)
        )

    return is_common


def _states_of(agents: AgentQuerySet, most: int) -> Iterator[AgentState]:
    """Yield the states of the agents that were registered last."""
    ids = [str(agent_id) for agent_id in agents.order_by("-id").values_list("id", flat=True)[:most]]
    if not ids:
        return
    cached = {agent_id: one.state for agent_id, one in state_cache.load(ids).items()}
    lost = [agent_id for agent_id, state in cached.items() if state is None]
    kept = {agent_id: one.state for agent_id, one in snapshots.of_agents(lost).items()}
    yield from (state for state in (cached | kept).values() if state is not None)
