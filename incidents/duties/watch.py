"""Announce clocks that are near their end or past it, each once; safe to repeat and to lose."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.json_values import written
from compliance.stores.sweeps import each
from incidents import services
from incidents.duties.clocks import NEAR, Clock
from incidents.models import Incident
from incidents.vocabulary import EntryKind

MOST_AT_ONCE: Final = 500
RETRY_AFTER: Final = timedelta(minutes=10)
WATCH: Final = Actor.system("incidents.watch")


def watch(*, now: datetime) -> int:
    """Make the announcements that are due, of up to 500 incidents; return how many were made.

    An incident that fails is tried again after `RETRY_AFTER`, behind those that are due by then.
    """
    due = Incident.objects.to_announce(now).order_by("next_announcement_at", "id")
    return each(
        due.values_list("id", flat=True)[:MOST_AT_ONCE],
        lambda incident_id: _announce(incident_id, now),
        postpone=lambda incident_id: (
            due.filter(id=incident_id).order_by().update(next_announcement_at=now + RETRY_AFTER)
        ),
    )


def _announce(incident_id: UUID, now: datetime) -> int:
    """Announce what is due, in one commit with the note that it was, under the row's lock."""
    with environments.atomic():
        incident = Incident.objects.to_announce(now).locked(skip=True).filter(id=incident_id).first()
        if incident is None:
            return 0
        made = sum(_announce_clock(incident, clock, now) for clock in incident.clocks())
        services.wind(incident)
        incident.save(update_fields=["announced", "next_announcement_at", "next_due_at"])
    return made


def _announce_clock(incident: Incident, clock: Clock, now: datetime) -> int:
    """Announce the latest stage that was reached: a clock that ended unwatched is not called near as well."""
    reached = [
        (stage, key)
        for at, stage, key in clock.announcements()
        if at <= now and key not in incident.announced
    ]
    incident.announced.extend(key for _, key in reached)
    if not reached:
        return 0
    is_near = reached[-1][0] == NEAR
    kind = EntryKind.DEADLINE_NEAR if is_near else EntryKind.DEADLINE_MISSED
    text = f"{clock.kind.label}: its term {'ends soon' if is_near else 'ended without a report on record'}"
    data = {"clock": clock.kind.value, "stage": reached[-1][0], "due_at": written(clock.due_at)}
    services.note_deadline(incident=incident, kind=kind, text=text, data=data, actor=WATCH, now=now)
    return 1
