"""Queries for incidents."""

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models.functions import Cast

from compliance.stores.rows import TenantRows
from incidents.errors import IncidentNotFound
from incidents.vocabulary import ENDED, EntryKind

if TYPE_CHECKING:
    from incidents.models import Incident


class IncidentQuerySet(TenantRows["Incident"]):
    """Incidents of the current environment."""

    missing = IncidentNotFound

    def ongoing(self) -> "IncidentQuerySet":
        """Return those that are neither closed nor merged into another."""
        return self.exclude(state__in=ENDED)

    def and_merged(self, incident_id: UUID) -> list[UUID]:
        """Return the ids of an incident and of all that were merged into it, also by way of others."""
        found = merged = [incident_id]
        while merged := list(self.filter(merged_into__in=merged).values_list("id", flat=True)):
            found = [*found, *merged]
        return found

    def with_reference(self, reference: str) -> "IncidentQuerySet":
        """Return those that a reference (`INC-20261120-3C3C3C3C`) may mean."""
        as_text = Cast("id", models.CharField())
        return self.annotate(as_text=as_text).filter(as_text__endswith=reference[-8:].lower())

    def to_announce(self, now: datetime) -> "IncidentQuerySet":
        """Return those of which a clock is near its end or past it and that was not announced."""
        return self.filter(next_announcement_at__lte=now)


class TimelineQuerySet(models.QuerySet[Any]):
    """Rows of timelines."""

    def of_incidents(self, incident_ids: Collection[UUID]) -> "TimelineQuerySet":
        """Return the rows of several incidents, the oldest first."""
        return self.filter(incident_id__in=incident_ids).order_by("at", "id")

    def attachments(self) -> "TimelineQuerySet":
        return self.filter(kind=EntryKind.ATTACHMENT)
