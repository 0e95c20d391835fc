"""Derive signals from the audit log in the order of its tree.

An entry has a position once it is sealed. The process that derives signals locks the row of the position it
has reached, so that each entry counts once for each stream.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Count

from agents.did import AgentDid
from auditlog.sealing.tree import head
from auditlog.vocabulary import SERVICE_TENANT_ID
from compliance.core import environments
from compliance.signals import streams
from compliance.signals.feed.events import (
    FOLLOWED_ACTIONS,
    FollowedEntry,
    Meaning,
    SubjectNames,
    occurrence_of,
    signal_id,
)
from compliance.signals.models import FeedPosition, Signal, Stream
from compliance.stores import sql

log = logging.getLogger(__name__)

ROUND: Final = 4096
_POSITION: Final = "SELECT position FROM signals_feedposition FOR UPDATE SKIP LOCKED"
_ENTRIES: Final = """
SELECT e.id, e.tenant_id, e.event_type, e.actor_kind, e.affected_id, e.metadata::text, e.created_at
FROM auditlog_leaf l JOIN auditlog_auditentry e ON e.id = l.entry_id
WHERE l.index >= %s AND l.index < %s AND e.event_type = ANY(%s)
ORDER BY l.index
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
        entries = _entries(start, end)
        _write(entries, now)
        FeedPosition.objects.update(position=end)
    return end - start


def follow_all(*, now: datetime) -> int:
    """Derive all signals there are; return how many positions were passed."""
    passed = 0
    while count := follow(now=now):
        passed += count
    return passed


def _entries(start: int, end: int) -> list[FollowedEntry]:
    rows = sql.query(_ENTRIES, [start, end, list(FOLLOWED_ACTIONS)])
    return [
        FollowedEntry(entry_id, tenant_id, action, kind, affected, _object(metadata), created_at)
        for entry_id, tenant_id, action, kind, affected, metadata, created_at in rows
    ]


def _object(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _write(entries: Sequence[FollowedEntry], now: datetime) -> None:
    names = SubjectNames(
        settings.TOKEN_ISSUER, lambda agent_id: str(AgentDid(environments.current(), agent_id))
    )
    found = [(entry, said) for entry in entries if (said := occurrence_of(entry, names))]
    if not found:
        return
    receivers = _receivers({entry.tenant_id for entry, _ in found})
    made = [
        _signal(stream, entry, said, now)
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


def _signal(stream: Stream, entry: FollowedEntry, said: Meaning, now: datetime) -> Signal:
    return Signal(
        stream=stream,
        jti=signal_id(stream_id=stream.id, entry_id=entry.id),
        entry_id=entry.id,
        event=said.event.value,
        claims=said.claims(transaction=entry.id),
        created_at=now,
    )


def _bound(stream_ids: set[UUID], now: datetime) -> None:
    """Disable streams in which more wait than may: nobody takes them."""
    waiting = Signal.objects.waiting().filter(stream_id__in=stream_ids).order_by()
    counts = waiting.values("stream_id").annotate(count=Count("id"))
    for row in counts.filter(count__gt=settings.SIGNALS_MOST_WAITING):
        streams.give_up(stream_id=row["stream_id"], now=now)
        log.warning("stream %s disabled: too much waits in it", row["stream_id"])
