"""Incidents and their timelines; agents, certificates and events are named by id."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint

from auditlog.vocabulary import ActorKind
from compliance.core.identifiers import new_id
from compliance.stores.rows import AppendOnlyRow
from incidents.duties.clocks import Clock, clocks_of
from incidents.querysets import IncidentQuerySet, TimelineQuerySet
from incidents.vocabulary import (
    ENDED,
    DoraClass,
    EntryKind,
    IncidentCause,
    IncidentSeverity,
    IncidentState,
    SeriousHarm,
)
from tenancy.models import Tenant


class Incident(models.Model):
    """An incident with one agent or several, from its detection to the last report.

    `agent_id` and `agent_name` are those of the agent that opened it; `agents` has all.

    Officers state `aware_at`, the classifications and the times of reports; `detected_at` is what the service
    saw first. `announced` has the keys of the clocks' announcements that were made.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="incidents")
    agent_id = models.UUIDField()
    agent_name = models.CharField(max_length=255)
    title = models.CharField(max_length=255)
    cause = models.CharField(max_length=16, choices=IncidentCause.choices)
    state = models.CharField(max_length=16, choices=IncidentState.choices, default=IncidentState.OPEN)
    severity = models.CharField(
        max_length=16, choices=IncidentSeverity.choices, default=IncidentSeverity.HIGH
    )
    owner = models.CharField(max_length=255, blank=True)
    detected_at = models.DateTimeField()
    opened_at = models.DateTimeField()
    contained_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField()
    merged_into = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="merged")

    aware_at = models.DateTimeField(null=True)
    serious_harm = models.CharField(max_length=32, choices=SeriousHarm.choices, default=SeriousHarm.UNDECIDED)
    ai_act_reported_at = models.DateTimeField(null=True)
    dora_class = models.CharField(max_length=16, choices=DoraClass.choices, default=DoraClass.UNDECIDED)
    classified_at = models.DateTimeField(null=True)
    dora_initial_at = models.DateTimeField(null=True)
    dora_intermediate_at = models.DateTimeField(null=True)
    dora_final_at = models.DateTimeField(null=True)

    announced = ArrayField(models.CharField(max_length=128), default=list)
    next_announcement_at = models.DateTimeField(null=True)
    next_due_at = models.DateTimeField(null=True)

    objects = IncidentQuerySet.as_manager()

    class Meta:
        ordering = ["-opened_at", "-id"]
        indexes = [
            Index(fields=["tenant", "-opened_at", "-id"], name="incidents_tenant_time"),
            Index(
                fields=["next_announcement_at"],
                condition=Q(next_announcement_at__isnull=False),
                name="incidents_to_announce",
            ),
        ]
        constraints = [
            CheckConstraint(condition=Q(state__in=IncidentState.values), name="incidents_state_known"),
            CheckConstraint(
                condition=Q(severity__in=IncidentSeverity.values), name="incidents_severity_known"
            ),
            CheckConstraint(condition=Q(cause__in=IncidentCause.values), name="incidents_cause_known"),
            CheckConstraint(condition=Q(serious_harm__in=SeriousHarm.values), name="incidents_harm_known"),
            CheckConstraint(condition=Q(dora_class__in=DoraClass.values), name="incidents_dora_known"),
            CheckConstraint(
                condition=Q(state__in=ENDED, closed_at__isnull=False)
                | (~Q(state__in=ENDED) & Q(closed_at=None)),
                name="incidents_closed_has_time",
            ),
            CheckConstraint(
                condition=Q(state="merged", merged_into__isnull=False)
                | (~Q(state="merged") & Q(merged_into=None)),
                name="incidents_merged_has_other",
            ),
            CheckConstraint(
                condition=Q(dora_class="major", classified_at__isnull=False)
                | (~Q(dora_class="major") & Q(classified_at=None)),
                name="incidents_major_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reference} {self.title}"

    @property
    def reference(self) -> str:
        """A short name for letters and reports: the day of opening and the end of the id."""
        return f"INC-{self.opened_at:%Y%m%d}-{self.id.hex[-8:].upper()}"

    @property
    def has_ended(self) -> bool:
        """Return whether it is closed, or merged into another."""
        return self.state in ENDED

    def clocks(self) -> tuple[Clock, ...]:
        """Return the clocks by what is stated now; those of a merged incident go on in the other."""
        return clocks_of(self, are_over=self.state == IncidentState.MERGED)


class TouchedAgent(models.Model):
    """An agent of an incident. `is_current`: the incident goes on; an agent has one such incident at most."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="agents")
    agent_id = models.UUIDField()
    agent_name = models.CharField(max_length=255)
    since = models.DateTimeField()
    why = models.TextField()
    case_number = models.CharField(max_length=64, blank=True)
    is_current = models.BooleanField(default=True)

    class Meta:
        ordering = ["since", "id"]
        constraints = [
            UniqueConstraint(fields=["incident", "agent_id"], name="incidents_agent_once"),
            UniqueConstraint(
                fields=["agent_id"], condition=Q(is_current=True), name="incidents_one_open_for_agent"
            ),
        ]
        indexes = [
            Index(fields=["agent_id"], name="incidents_of_agent"),
            Index(fields=["case_number"], condition=Q(is_current=True), name="incidents_of_case"),
        ]


class TouchedCertificate(models.Model):
    """A certificate of an incident's agent that what happened concerns."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="certificates")
    agent_id = models.UUIDField()
    certificate_id = models.UUIDField()
    serial_number = models.CharField(max_length=64)
    since = models.DateTimeField()
    why = models.TextField()

    class Meta:
        ordering = ["since", "id"]
        constraints = [
            UniqueConstraint(fields=["incident", "certificate_id"], name="incidents_certificate_once")
        ]


class TimelineEntry(AppendOnlyRow):
    """One thing that happened in an incident.

    `at` is when it happened, which for an occurrence is its detection. An attachment is its name, size and
    SHA-256 in `data`: the file stays with the officer.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="timeline")
    kind = models.CharField(max_length=16, choices=EntryKind.choices)
    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=16, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=255)
    text = models.TextField()
    event_id = models.UUIDField(null=True)
    certificate_id = models.UUIDField(null=True)
    serial_number = models.CharField(max_length=64, blank=True)
    data = models.JSONField(null=True)

    objects = TimelineQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "timeline entries"
        ordering = ["at", "id"]
        indexes = [Index(fields=["incident", "at", "id"], name="incidents_timeline")]
        constraints = [
            CheckConstraint(condition=Q(kind__in=EntryKind.values), name="incidents_entry_kind_known"),
            CheckConstraint(condition=Q(actor_kind__in=ActorKind.values), name="incidents_entry_actor_known"),
        ]
