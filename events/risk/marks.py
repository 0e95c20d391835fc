"""The places marked for a tenant: where attacks went that an officer confirmed.

Each process caches them under the tenant's version, which is read with each event's agent.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from compliance.core import environments
from compliance.core.bounded_cache import BoundedCache
from compliance.stores import sql
from events.models import MarkedPlace, TenantMarks

MOST = 10_000  # most marked places of a tenant that count: the newest
KEPT_TENANTS = 1_000
NONE: frozenset[str] = frozenset()

_RAISE_VERSION = f"""
INSERT INTO {TenantMarks._meta.db_table} AS known (tenant_id, version) VALUES (%s, 1)
ON CONFLICT (tenant_id) DO UPDATE SET version = known.version + 1
"""  # noqa: S608  (only a table's name is put into the text)

_kept: BoundedCache[tuple[str, UUID], tuple[int, frozenset[str]]] = BoundedCache(KEPT_TENANTS)


def put(*, tenant_id: UUID, event_id: UUID, places: Sequence[str], now: datetime) -> None:
    """Replace the places that the event marks, in the caller's transaction."""
    lifted, _ = MarkedPlace.objects.filter(event_id=event_id).delete()
    MarkedPlace.objects.bulk_create(
        MarkedPlace(tenant_id=tenant_id, event_id=event_id, name=name, marked_at=now) for name in places
    )
    if lifted or places:
        sql.execute(_RAISE_VERSION, [tenant_id])


def places_of(tenants: Iterable[TenantMarks]) -> Mapping[UUID, frozenset[str]]:
    """Return each tenant's marked places, from the process's cache where the version is the same."""
    found: dict[UUID, frozenset[str]] = {}
    environment = environments.current().value
    for marks in tenants:
        key = environment, marks.tenant_id
        kept = _kept.get(key)
        if kept is None or kept[0] != marks.version:
            rows = MarkedPlace.objects.filter(tenant_id=marks.tenant_id)
            kept = marks.version, frozenset(rows.values_list("name", flat=True)[:MOST])
            _kept.put(key, kept)
        found[marks.tenant_id] = kept[1]
    return found
