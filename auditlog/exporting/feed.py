"""A tenant's entries in the order of the tree: a late commit stands behind what was read before."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Min, OuterRef, Subquery

from auditlog.filters import EntryFilters
from auditlog.models import EARLIEST, AuditEntry, Leaf
from auditlog.querysets import AuditEntryQuerySet
from auditlog.sealing.tree import head
from compliance.api.pagination import Cursor, Feed, first_rows

WINDOW: Final = 10_000
"""A page reads so many places of the tree at most, whosever entries stand there."""
LONGEST_TRANSACTION: Final = timedelta(days=1)


def feed_page(
    *, tenant_id: UUID, filters: EntryFilters, after: Cursor | None, limit: int
) -> Feed[AuditEntry]:
    """Return the entries from the position `after`, or from the first one later than a plain date-time."""
    size, entries = head().size, AuditEntry.objects.for_tenant(tenant_id)
    if after is not None and after.id is not None:
        start, filters = min(after.id.int, size), replace(filters, after=None)
    else:
        start = _first_place(entries, after.at if after else EARLIEST, size)
    end = min(start + WINDOW, size)
    places = Leaf.objects.filter(index__gte=start, index__lt=end)
    place = Subquery(Leaf.objects.filter(entry_id=OuterRef("id")).values("index"))
    within = filters.applied(entries).filter(id__in=places.values("entry_id")).annotate(place=place)
    rows, has_more = first_rows(within.order_by("place"), limit=limit)
    following = rows[-1].place + 1 if has_more else end
    return Feed(rows, UUID(int=following), following < size)


def _first_place(entries: AuditEntryQuerySet, moment: datetime, size: int) -> int:
    """Return the lowest place of an entry later than the moment; `size`, read before, if none is sealed.

    Of two entries the later one can have been sealed first only while the other's transaction was open.
    """
    later = entries.filter(created_at__gt=moment)
    earliest = later.order_by("created_at", "id").values_list("created_at", flat=True).first()
    if earliest is None:
        return size
    near = later.filter(created_at__lte=earliest + LONGEST_TRANSACTION)
    found = Leaf.objects.filter(entry_id__in=near.values("id")).aggregate(place=Min("index"))["place"]
    return size if found is None else min(found, size)
