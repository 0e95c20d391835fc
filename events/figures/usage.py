"""What agents use of what they may do: names counted by day, and a scope compared with them.

Each event is counted once: its day's figures and the mark behind it commit together. Of refusals by
evaluations, which leave audit entries alone, the last days are counted anew.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from certificates.models import Certificate, certified_actions
from compliance.stores import sql
from events.figures.days import FIRST_DAYS, UNSETTLED_DAYS
from events.figures.models import ActionDay, NameOutcome
from events.models import ActionType, BehaviorEvent, ScorerProgress
from events.risk.rolling import NOTHING, RUN_SECONDS, in_chunks, oldest_kept
from events.risk.scoring.contract import normal_actions
from events.risk.scoring.details import read
from events.risk.scoring.names import keys_of, normal_name, scope_of
from events.risk.scoring.rules import MANNERS, undeclared_action
from tenancy.models import Tenant

NAME: Final = "usage"
CHUNK: Final = 20_000
WINDOW: Final = timedelta(days=90)
"""The time within which a permitted name should be used."""
MOST_NAMES: Final = 200  # counted by themselves for one agent and day; the rest share one row
MOST_NEW: Final = 2_000  # of an agent's events that are not counted yet, and are read one by one
MOST_OCTETS: Final = 900  # of names in a row

_TABLE, _EVENTS, _ENTRIES, _TENANTS, _PROGRESS = (
    model._meta.db_table for model in (ActionDay, BehaviorEvent, AuditEntry, Tenant, ScorerProgress)
)
_OUTSIDE = """jsonb_path_query_first(
    reasons, '$[*] ? (@.name == "off_scope" || @.name == "scope_mismatch").observed') #>> '{}'"""
_READ = f"""
SELECT agent_id, (received_at AT TIME ZONE 'UTC')::date, received_at, action_type, details::text, {_OUTSIDE}
FROM {_EVENTS} WHERE id >= %(low)s AND id < %(high)s
"""  # noqa: S608  (only names of tables are put into the text)
_PUT = f"""
WITH given AS (
    SELECT * FROM unnest(%(agents)s::uuid[], %(days)s::date[], %(outcomes)s::text[], %(names)s::text[],
        %(counts)s::bigint[], %(lasts)s::timestamptz[]) AS row (agent_id, day, outcome, names, count, last_at)
), placed AS (
    SELECT given.*, known.id IS NOT NULL AS is_known,
        row_number() OVER (
            PARTITION BY given.agent_id, given.day ORDER BY known.id IS NULL, given.names
        ) - count(known.id) OVER (PARTITION BY given.agent_id, given.day) + (
            SELECT count(*) FROM {_TABLE} AS old WHERE old.agent_id = given.agent_id AND old.day = given.day
        ) AS place
    FROM given LEFT JOIN {_TABLE} known USING (agent_id, day, outcome, names)
)
INSERT INTO {_TABLE} AS known (agent_id, day, outcome, names, count, last_at)
SELECT agent_id, day, outcome, CASE WHEN is_known OR place <= %(most)s THEN names ELSE '' END AS kept,
    sum(count), max(last_at)
FROM placed GROUP BY agent_id, day, outcome, kept ORDER BY agent_id, day, outcome, kept
ON CONFLICT (agent_id, day, outcome, names) DO UPDATE SET
    count = known.count + excluded.count, last_at = greatest(known.last_at, excluded.last_at)
"""  # noqa: S608
_PUT_DENIED = f"""
INSERT INTO {_TABLE} AS known (agent_id, day, outcome, names, count, last_at)
SELECT agent_id, day, 'evaluation', names, count, last_at FROM (
    SELECT affected_id::uuid AS agent_id, (entry.created_at AT TIME ZONE 'UTC')::date AS day,
        jsonb_build_array('', jsonb_build_array(left(metadata->>'action', 200)), '[]'::jsonb)::text AS names,
        count(*) AS count, max(entry.created_at) AS last_at,
        row_number() OVER (
            PARTITION BY affected_id, (entry.created_at AT TIME ZONE 'UTC')::date
            ORDER BY min(entry.created_at)
        ) AS place
    FROM {_TENANTS} tenant JOIN {_ENTRIES} entry ON entry.tenant_id = tenant.id
    WHERE entry.event_type = %(denied)s AND entry.created_at >= %(first)s
        AND metadata->>'agent_id' = affected_id AND metadata->>'action' IS NOT NULL
    GROUP BY 1, 2, 3, affected_id
) AS denied
WHERE place <= %(most)s ORDER BY agent_id, day, names
ON CONFLICT (agent_id, day, outcome, names) DO UPDATE SET count = excluded.count, last_at = excluded.last_at
"""  # noqa: S608
# One statement, so that figures and mark are of one moment
_SUMS = f"""
SELECT agent_id, outcome, names, sum(count)::bigint, max(last_at), NULL FROM {_TABLE}
WHERE agent_id = ANY(%(agents)s::uuid[]) AND day >= %(first)s AND day <= %(last)s
GROUP BY agent_id, outcome, names
UNION ALL
SELECT given.id, event.action_type, event.details, NULL, event.received_at, event.outside
FROM unnest(%(agents)s::uuid[]) AS given (id) CROSS JOIN LATERAL (
    SELECT action_type, details::text AS details, received_at, {_OUTSIDE} AS outside FROM {_EVENTS}
    WHERE agent_id = given.id AND received_at >= %(first)s AND received_at < %(last)s + interval '1 day'
        AND id >= %(low)s
        AND id >= coalesce((SELECT upto FROM {_PROGRESS} WHERE name = %(name)s), %(nothing)s)
    ORDER BY id DESC LIMIT %(most)s
) AS event
"""  # noqa: S608


Row = tuple[str, str, int, datetime]
"""Outcome, names, count and last time."""
Names = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Action type, tools and verbs, as the JSON of a row's names has them; a row without is of other names."""
NO_NAMES: Final = '["",[],[]]'
OTHERS: Final = "other names"


@dataclass(frozen=True)
class NameUse:
    """A name as it was used or refused: how often, and when last.

    `permitted`: whether the scope has or permits it; None without a scope. `refused_by`: empty if used.
    """

    name: str
    count: int
    last_at: datetime
    permitted: bool | None
    refused_by: str


@dataclass(frozen=True)
class Usage:
    """An agent's actions from `since` to `until`, whole UTC days, beside its scope of now.

    `is_complete`: whether all events are counted, each name by itself. Only then is a name known to be
    unused; `unused` is empty otherwise.
    """

    since: date
    until: date
    permitted: list[str] | None
    used: list[NameUse]
    unused: list[str]
    refused: list[NameUse]
    is_complete: bool

    @property
    def last_used_at(self) -> datetime | None:
        return max((one.last_at for one in self.used), default=None)


def sum_up(*, now: datetime, seconds: float = RUN_SECONDS) -> int:
    """Count the names of new events, for about so long; return how many events. Safe to repeat.

    How often evaluations refused names is written anew for the last days, at first for the last weeks.
    """
    is_first = not ActionDay.objects.filter(outcome=NameOutcome.EVALUATION).exists()
    days = FIRST_DAYS if is_first else UNSETTLED_DAYS
    first = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
    sql.execute(
        _PUT_DENIED, {"denied": AuditAction.DECISION_DENIED.value, "first": first, "most": MOST_NAMES}
    )
    return in_chunks(_next_chunk, now, seconds)


def forget(*, now: datetime) -> None:
    ActionDay.objects.filter(day__lt=oldest_kept(now)).delete()


def usage(agent: Agent, since: datetime, until: datetime, now: datetime | None = None) -> Usage:
    """Return what the agent used, did not use and was refused, in the UTC days of `since` to `until`.

    `now`: where the period ended before; days past their retention are not complete.
    """
    return usages([agent], since, until, now)[agent.id]


def usages(
    agents: Sequence[Agent], since: datetime, until: datetime, now: datetime | None = None
) -> Mapping[UUID, Usage]:
    """As `usage`, of each agent by its id, in as many statements as for one."""
    ids, kept = [agent.id for agent in agents], oldest_kept(now or until)
    first, last = _day(since), _day(until)
    # The statement reads the mark again; what it was before spares it the plans of older partitions.
    mark = ScorerProgress.objects.filter(name=NAME).values_list("upto", flat=True).first() or NOTHING
    asked = {"agents": ids, "first": first, "last": last, "name": NAME, "nothing": NOTHING, "low": mark}
    rows: dict[UUID, list[Row]] = {agent_id: [] for agent_id in ids}
    new: Counter[UUID] = Counter()
    for agent_id, one, other, count, last_at, outside in sql.query(_SUMS, {**asked, "most": MOST_NEW + 1}):
        if count is None:
            new[agent_id] += 1
            one, other, count = *_named(one, other, outside), 1  # noqa: PLW2901
        rows[agent_id].append((one, other, count, last_at))
    newest = Certificate.objects.filter(agent_id__in=ids).order_by("agent_id", "-issued_at", "-id")
    latest = {one.agent_id: one for one in newest.distinct("agent_id").only("agent_id", "claims")}
    return {
        agent.id: _compared(first, last, permitted, rows[agent.id], is_complete)
        for agent in agents
        for permitted in [certified_actions(agent, latest.get(agent.id))]
        for is_complete in [new[agent.id] <= MOST_NEW and max(first, _day(agent.created_at)) >= kept]
    }


def _compared(
    first: date, last: date, permitted: list[str] | None, rows: Sequence[Row], is_complete: bool
) -> Usage:
    """Compare the names in the rows of an agent with its scope."""
    scope = None if permitted is None else normal_actions(permitted)
    own = {name: normal_name(name) for name in permitted or () if name.strip()}
    by_key: defaultdict[str, set[str]] = defaultdict(set)
    for name, plain in own.items():
        for key_of_it in keys_of(plain, is_stated=True):
            by_key[key_of_it].add(name)
    counts: Counter[tuple[str, bool | None, str]] = Counter()
    lasts: dict[tuple[str, bool | None, str], datetime] = {}
    for outcome, text, count, last_at in rows:
        action_type, tools, verbs = msgspec.json.decode(text or NO_NAMES, type=Names)
        keys: list[tuple[str, bool | None, str]]
        if outcome != NameOutcome.USED:
            keys = [(tools[0] if text else OTHERS, None, outcome)]
        elif not text:
            is_complete, keys = False, [(OTHERS, None, "")]
        else:
            within = None if scope is None else undeclared_action(action_type, scope, tools, verbs) is None
            pairs = [f"{tool}.{verb}" for tool in tools for verb in verbs]
            near = {
                name
                for part in (action_type, *tools, *verbs, *pairs)
                for shared in keys_of(part)
                for name in by_key.get(shared, ())
            }
            said = [name for name in near if _uses(own[name], action_type, (*tools, *verbs), pairs)]
            keys = [(name, True, "") for name in said] or [(_spoken(action_type, tools, verbs), within, "")]
        for key in keys:
            counts[key] += count
            lasts[key] = max(last_at, lasts.get(key, last_at))
    found = [
        NameUse(key[0], counts[key], lasts[key], *key[1:])
        for key in sorted(counts, key=lambda key: (-counts[key], key[0], key[2]))
    ]
    used, refused = [one for one in found if not one.refused_by], [one for one in found if one.refused_by]
    known = {one.name for one in used}
    unused = [name for name in dict.fromkeys(permitted or ()) if name not in known] if is_complete else []
    return Usage(first, last, permitted, used, unused, refused, is_complete)


def _day(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def _uses(name: str, action_type: str, parts: Sequence[str], pairs: Sequence[str]) -> bool:
    """Return whether an action, of these tools and verbs, is one that this permitted name alone may allow."""
    scope = scope_of(frozenset((name,)))
    return name == action_type or any(map(scope.permits, parts)) or any(map(scope.states, pairs))


def _spoken(action_type: str, tools: Sequence[str], verbs: Sequence[str]) -> str:
    """Return the name of an action that no permitted name covers."""
    said = [verb for verb in verbs[:1] if verb != action_type and not (tools and verb in MANNERS)]
    return ".".join([*tools[:1], *said]) or action_type


def _next_chunk(settled: UUID) -> int | None:
    """Count about `CHUNK` events; return how many, None if there is nothing to do."""
    ScorerProgress.objects.get_or_create(name=NAME, defaults={"upto": NOTHING})
    mark = ScorerProgress.objects.select_for_update(skip_locked=True).filter(name=NAME).first()
    if mark is None or mark.upto >= settled:
        return None
    upto = BehaviorEvent.objects.id_after(CHUNK, low=mark.upto, high=settled) or settled
    events = sql.query(_READ, {"low": mark.upto, "high": upto})
    counts: Counter[tuple[UUID, date, str, str]] = Counter()
    lasts: dict[tuple[UUID, date, str, str], datetime] = {}
    for agent_id, day, received_at, *said in events:
        key = agent_id, day, *_named(*said)
        counts[key] += 1
        lasts[key] = max(received_at, lasts.get(key, received_at))
    if counts:
        agents, days, outcomes, names = (list(column) for column in zip(*counts, strict=True))
        given: dict[str, Any] = {"agents": agents, "days": days, "outcomes": outcomes, "names": names}
        numbers = {"counts": list(counts.values()), "lasts": [lasts[key] for key in counts]}
        sql.execute(_PUT, {**given, **numbers, "most": MOST_NAMES})
    mark.upto = upto
    mark.save(update_fields=["upto"])
    return len(events)


def _named(action_type: str, details: str, outside: str | None) -> tuple[str, str]:
    """Return an event's outcome, and its names as a row has them."""
    said, outcome = msgspec.json.decode(details), NameOutcome.SCOPE
    spoken: Names
    if outside is not None:
        spoken = action_type, (outside,), ()
    elif action_type == ActionType.UNAUTHORIZED_ACCESS_ATTEMPT and isinstance(said.get("action"), str):
        outcome = NameOutcome.GATEWAY if said.get("source") == "gateway" else NameOutcome.SCOPE
        spoken = action_type, (normal_name(said["action"]),), ()
    else:
        outcome, facts = NameOutcome.USED, read(said)
        spoken = action_type, facts.tools, facts.verbs
    names = msgspec.json.encode(spoken)
    return outcome.value, names.decode() if len(names) <= MOST_OCTETS else ""
