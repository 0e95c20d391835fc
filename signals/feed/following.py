"""Derive signals from the audit log in the order of its tree.

An entry has a position once it is sealed. The process that derives signals locks the row of the position it
has reached, so that each entry counts once for each stream.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID, uuid5

from django.conf import settings
from django.db.models import Count

from auditlog.models import AuditEntry
from auditlog.sealing.tree import head
from auditlog.vocabulary import SERVICE_TENANT_ID
from compliance.core import environments
from compliance.stores import sql
from signals import streams
from signals.feed.events import FOLLOWED_ACTIONS, occurrence_of
from signals.models import FeedPosition, Signal, Stream

log = logging.getLogger(__name__)

ROUND: Final = 4096
_POSITION: Final = "SELECT position FROM signals_feedposition FOR UPDATE SKIP LOCKED"
_ENTRIES: Final = """
SELECT entry.* FROM auditlog_leaf leaf JOIN auditlog_auditentry entry ON entry.id = leaf.entry_id
WHERE leaf.index >= %s AND leaf.index < %s AND entry.event_type = ANY(%s)
ORDER BY leaf.index
"""


def follow(*, now: datetime) -> int:
    """Derive the signals of the next `ROUND` positions at most; return how many positions.

    0: nothing new, nobody ever made a stream, or another process is at work.
    """
    with environments.atomic():
        rows = sql.query(_POSITION)
        if not rows:
            return 0
        start: int = rows[0][0]
        end = min(start + ROUND, head().size)
        if end <= start:
            return 0
        # The entries first: a stream that was there before one of them is then seen.
        _write(list(AuditEntry.objects.raw(_ENTRIES, [start, end, list(FOLLOWED_ACTIONS)])), now)
        FeedPosition.objects.update(position=end)
    return end - start


def _write(entries: Sequence[AuditEntry], now: datetime) -> None:
    found = [(entry, said) for entry in entries if (said := occurrence_of(entry))]
    if not found:
        return
    receivers = _receivers({entry.tenant_id for entry, _ in found})
    made = [
        Signal(
            stream=stream,
            jti=uuid5(stream.id, str(entry.id)),  # the same whenever it is derived
            entry_id=entry.id,
            event=said.event.value,
            claims={
                "txn": str(entry.id),
                "sub_id": said.subject,
                "events": {said.event.value: said.details},
            },
            created_at=now,
        )
        for entry, said in found
        for stream in receivers[entry.tenant_id]
        if said.event.value in stream.events_requested
    ]
    Signal.objects.bulk_create(made, batch_size=1000, ignore_conflicts=True)
    _bound({signal.stream_id for signal in made}, now)


def _receivers(tenant_ids: set[UUID]) -> dict[UUID, list[Stream]]:
    """Map tenants to their streams; what is said of the service itself goes to all."""
    streams_now = Stream.objects.receiving().order_by("id")
    if SERVICE_TENANT_ID not in tenant_ids:
        streams_now = streams_now.filter(tenant_id__in=tenant_ids)
    found: dict[UUID, list[Stream]] = defaultdict(list)
    for stream in streams_now:
        found[stream.tenant_id].append(stream)
        found[SERVICE_TENANT_ID].append(stream)
    return found


def _bound(stream_ids: set[UUID], now: datetime) -> None:
    """Disable streams in which more wait than may: nobody takes them."""
    waiting = Signal.objects.waiting().filter(stream_id__in=stream_ids).order_by()
    counts = waiting.values("stream_id").annotate(count=Count("id"))
    for row in counts.filter(count__gt=settings.SIGNALS_MOST_WAITING):
        streams.give_up(stream_id=row["stream_id"], now=now)
        log.warning("stream %s disabled: too much waits in it", row["stream_id"])
