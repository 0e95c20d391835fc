"""An agent's context for the scorer, and its tenant's marked places: where confirmed attacks went.

Each process caches them under the tenant's version, which is read with each event's agent.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from uuid import UUID

import msgspec

from agents.models import Agent
from certificates.models import Certificate, certified_actions
from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.stores import sql
from events.models import BehaviorEvent, MarkedPlace, TenantMarks
from events.risk.scoring.contract import NO_MARKS, Context, FinancialScope, Marks, normal_actions
from events.risk.scoring.marked import may_be_marked, weighed

MOST = 10_000  # most marks of a tenant that count: the newest
KEPT_TENANTS = 1_000

_RAISE_VERSION = f"""
INSERT INTO {TenantMarks._meta.db_table} AS known (tenant_id, version) VALUES (%s, 1)
ON CONFLICT (tenant_id) DO UPDATE SET version = known.version + 1
"""  # noqa: S608  (only a table's name is put into the text)

_kept: BoundedCache[tuple[str, UUID], tuple[int, Marks]] = BoundedCache(KEPT_TENANTS)


def put(
    *, tenant_id: UUID, event_id: UUID, places: Collection[str], is_confirmed: bool, now: datetime
) -> None:
    """Replace what the event says of places, for or against a mark, in the caller's transaction."""
    lifted, _ = MarkedPlace.objects.filter(tenant_id=tenant_id, event_id=event_id).delete()
    MarkedPlace.objects.bulk_create(
        MarkedPlace(
            tenant_id=tenant_id, event_id=event_id, name=name, is_confirmed=is_confirmed, marked_at=now
        )
        for name in places
    )
    if lifted or places:
        sql.execute(_RAISE_VERSION, [tenant_id])


def met_by(event: BehaviorEvent) -> list[str]:
    """Return the marked places that the event names and that were marked before it was received."""
    earlier = MarkedPlace.objects.filter(
        tenant_id=event.tenant_id, is_confirmed=True, marked_at__lt=event.received_at
    )
    named = earlier.filter(name__in=may_be_marked(event.details))
    return sorted(set(named.exclude(event_id=event.id).values_list("name", flat=True)))


def of_tenants(tenants: Iterable[TenantMarks]) -> Mapping[UUID, Marks]:
    """Return each tenant's marked places, from the process's cache where the version is the same."""
    found: dict[UUID, Marks] = {}
    environment = environments.current().value
    for one in tenants:
        key = environment, one.tenant_id
        kept = _kept.get(key)
        if kept is None or kept[0] != one.version:
            rows = MarkedPlace.objects.filter(tenant_id=one.tenant_id)
            newest = rows.values_list("name", "marked_at", "is_confirmed")[:MOST]
            kept = one.version, weighed((name, at.timestamp(), sign) for name, at, sign in reversed(newest))
            _kept.put(key, kept)
        found[one.tenant_id] = kept[1]
    return found


def context_of(agent: Agent, certificate: Certificate | None, marked: Marks = NO_MARKS) -> Context:
    """Return the agent's context; `certificate`: its latest; `marked`: the tenant's places of attacks.

    The agent's tenant is read, unless it was with the agent.
    """
    permitted, limits = certified_actions(agent, certificate), agent.financial_scope
    return Context(
        permitted_actions=None if permitted is None else normal_actions(permitted),
        financial_scope=msgspec.convert(limits, FinancialScope, strict=False) if limits else None,
        home_domain=_domain(agent.inbox_address),
        marked=marked,
        alarm_budget=agent.effective_alarm_budget,
    )


def _domain(address: str | None) -> str | None:
    domain = (address or "").strip().casefold().rpartition("@")[2].strip(".")
    return domain if "." in domain else None
