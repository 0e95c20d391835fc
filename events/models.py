"""Behavioural events, their reviews, and what the scorer derives from them."""

from typing import Any

from django.db import models
from django.db.models import Q

from agents.models import Agent
from auditlog.vocabulary import ActorType
from compliance.core.identifiers import new_id
from compliance.stores.rows import AppendOnlyRow
from compliance.stores.tenant_keys import TenantForeignKey
from events.querysets import BehaviorEventQuerySet, EventReviewQuerySet, SimulationQuerySet
from tenancy.models import Tenant


class ActionType(models.TextChoices):
    """Action types of the interface specification."""

    API_CALL = "api_call"
    AUTHENTICATION_ATTEMPT = "authentication_attempt"
    AUTHENTICATION_FAILURE = "authentication_failure"
    DATA_ACCESS = "data_access"
    DATA_MUTATION = "data_mutation"
    TRANSACTION_INITIATED = "transaction_initiated"
    TRANSACTION_ANOMALY = "transaction_anomaly"
    UNAUTHORIZED_ACCESS_ATTEMPT = "unauthorized_access_attempt"
    MESSAGE_SIGNED = "message_signed"
    MESSAGE_VERIFICATION_FAILED = "message_verification_failed"


class RiskBand(models.TextChoices):
    """The bands of `agents.risk`, whose names are their labels."""

    LOW = "low", "low"
    MEDIUM = "medium", "medium"
    HIGH = "high", "high"


UNCHECKED: dict[str, Any] = {"db_index": False, "db_constraint": False}
"""A reference that the service checks: a foreign key would lock the agent's row for each event."""

NOT_LOW = ~Q(risk_band="low")


class BehaviorEvent(models.Model):
    """One reported action. `occurred_at` is the agent's word, `received_at` the service's clock.

    `decision_id`: the decision by which the agent acted, as it says.

    `reasons`: a list of {name, observed, expected, weight}, what decided first. The table is partitioned by
    id, which is the order of receipt (`events.partitions`); the database holds no foreign keys from it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", **UNCHECKED)
    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="events", **UNCHECKED)
    action_type = models.CharField(max_length=32, choices=ActionType.choices)
    risk_score = models.FloatField()
    risk_band = models.CharField(max_length=8, choices=RiskBand.choices)
    occurred_at = models.DateTimeField()
    received_at = models.DateTimeField()
    details = models.JSONField(default=dict)
    session_id = models.CharField(max_length=255, null=True)  # noqa: DJ001  (null and "" differ in the API)
    chain_id = models.UUIDField(null=True)
    reasons = models.JSONField(default=list)
    model_version = models.CharField(max_length=32)
    decision_id = models.UUIDField(null=True)
    review: "EventReview | None" = None  # the review that counts, if the view looked it up

    objects = BehaviorEventQuerySet.as_manager()

    class Meta:
        ordering = ["-occurred_at", "-id"]
        # Trailing columns are looked at inside the index, where a filter would fetch each row. `-id` is
        # the order of receipt.
        indexes = [
            models.Index(fields=["tenant", "-occurred_at", "-id", "risk_band"], name="events_tenant_list"),
            models.Index(
                fields=["agent", "-occurred_at", "-id", "action_type", "risk_band"], name="events_agent_list"
            ),
            models.Index(
                fields=["tenant", "action_type", "-occurred_at", "-id", "risk_band"], name="events_type_list"
            ),
            models.Index(
                fields=["tenant", "risk_band", "-occurred_at", "-id", "action_type"],
                condition=NOT_LOW,
                name="events_tenant_band_list",
            ),
            models.Index(
                fields=["agent", "risk_band", "-occurred_at", "-id", "action_type"],
                condition=NOT_LOW,
                name="events_agent_band_list",
            ),
            models.Index(fields=["agent", "-id"], name="events_agent_receipt"),
            models.Index(
                fields=["received_at", "agent"], condition=Q(risk_band="high"), name="events_high_receipt"
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(action_type__in=ActionType.values), name="events_type_known"),
            models.CheckConstraint(
                condition=Q(risk_score__gte=0, risk_score__lte=1), name="events_score_in_range"
            ),
            models.CheckConstraint(
                condition=Q(risk_band="low", risk_score__lt=0.3)
                | Q(risk_band="medium", risk_score__gte=0.3, risk_score__lt=0.85)
                | Q(risk_band="high", risk_score__gte=0.85),
                name="events_band_of_score",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action_type.replace('_', ' ')} {self.risk_score:.2f}"


class ReviewVerdict(models.TextChoices):
    """Part of an attack, or ordinary after all."""

    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"


class EventReview(AppendOnlyRow):
    """An officer's verdict on an event, which it outlives; the highest `number` counts.

    `marked`: the places that it put on the tenant's list.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", **UNCHECKED)
    agent = TenantForeignKey(Agent, on_delete=models.PROTECT, related_name="reviews", **UNCHECKED)
    event_id = models.UUIDField()
    number = models.PositiveIntegerField()
    verdict = models.CharField(max_length=16, choices=ReviewVerdict.choices)
    note = models.CharField(max_length=1000, null=True)  # noqa: DJ001  (null and "" differ in the API)
    case_number = models.CharField(max_length=64, null=True)  # noqa: DJ001  (null: none)
    marked = models.JSONField(default=list)
    actor_type = models.CharField(max_length=16, choices=ActorType.choices)
    actor_id = models.CharField(max_length=255)
    reviewed_at = models.DateTimeField()

    objects = EventReviewQuerySet.as_manager()

    class Meta:
        ordering = ["-reviewed_at", "-id"]
        indexes = [
            models.Index(fields=["tenant", "-reviewed_at", "-id"], name="events_review_list"),
            models.Index(fields=["agent", "-reviewed_at", "-id"], name="events_review_of_agent"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["event_id", "number"], name="events_review_in_order"),
            models.CheckConstraint(
                condition=Q(verdict__in=ReviewVerdict.values), name="events_review_verdict_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} {self.reviewed_at:%Y-%m-%d %H:%M:%S}"


class PendingReview(models.Model):
    """A review that the agent's state has not taken in yet; the row goes once it has."""

    id = models.UUIDField(primary_key=True, editable=False)
    agent_id = models.UUIDField(db_index=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["created_at", "id"]

    def __str__(self) -> str:
        return str(self.id)


class MarkedPlace(models.Model):
    """A place that a confirmed event went to, or with `is_confirmed` false a later event that was dismissed.

    What agents of the tenant do there is more suspicious, as far as confirmations outweigh dismissals.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", **UNCHECKED)
    event_id = models.UUIDField(db_index=True)
    name = models.CharField(max_length=300)
    marked_at = models.DateTimeField()
    is_confirmed = models.BooleanField(default=True, db_default=True)

    class Meta:
        ordering = ["-marked_at", "-id"]
        indexes = [models.Index(fields=["tenant", "-marked_at", "-id"], name="events_marked_list")]
        constraints = [models.UniqueConstraint(fields=["event_id", "name"], name="events_marked_once")]

    def __str__(self) -> str:
        return self.name


class TenantVersion(models.Model):
    """The version of something that processes cache of a tenant: they read it again if it has changed."""

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+", db_constraint=False
    )
    version = models.BigIntegerField()

    class Meta:
        abstract = True
        ordering = ["tenant_id"]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.version}"


class TenantMarks(TenantVersion):
    """The version of a tenant's marked places."""


class ScorerSnapshot(models.Model):
    """An agent's state as Redis had it; `tag`: the id of the last event folded in, or a later one.

    A short cut to a rebuild: it may be lost, old, or of another layout.
    """

    agent_id = models.UUIDField(primary_key=True)
    tag = models.UUIDField()
    state = models.BinaryField()
    model_version = models.CharField(max_length=32)
    taken_at = models.DateTimeField()

    class Meta:
        ordering = ["agent_id"]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.taken_at:%Y-%m-%d %H:%M:%S}"


class TenantBaseline(TenantVersion):
    """The habits common to a tenant's agents, as `events.risk.scoring.state` packs it."""

    baseline = models.BinaryField()


class ScorerProgress(models.Model):
    """The progress of a task over events: those with an id below `upto` are done."""

    name = models.CharField(max_length=32, primary_key=True)
    upto = models.UUIDField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{self.name} {self.upto}"


class RiskDay(models.Model):
    """The sums of an agent's events of one UTC day of receipt, by `events.risk.rolling`.

    `peak_score` at `peak_at` is the event that weighs most at any later time, as all fade at one rate.
    """

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="risk_days", **UNCHECKED)
    day = models.DateField()
    events = models.BigIntegerField()
    medium = models.BigIntegerField()
    high = models.BigIntegerField()
    score_sum = models.FloatField()
    max_score = models.FloatField()
    peak_score = models.FloatField()
    peak_at = models.DateTimeField()

    class Meta:
        ordering = ["-day", "agent_id", "id"]
        indexes = [models.Index(fields=["agent", "-day"], name="events_risk_day_of_agent")]
        constraints = [models.UniqueConstraint(fields=["day", "agent"], name="events_risk_day_once")]

    def __str__(self) -> str:
        return f"{self.day:%Y-%m-%d}: {self.events} events, at most {self.max_score:.2f}"


class RiskWatermark(models.Model):
    """Events with an id below `upto` are in the daily sums; the only row commits with the sums."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    upto = models.UUIDField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="events_one_watermark")]

    def __str__(self) -> str:
        return str(self.upto)


class SimulationStatus(models.TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


class Simulation(models.Model):
    """A tenant's stored events replayed through another risk policy, step by step.

    `policies`: the order of the replay as JSON. `checkpoint`: where the next step goes on, empty once it is
    over. A step is claimed until `leased_until`; `claims` counts all claims, `attempts` those since the last
    step that was done. `findings`: the result as JSON (`events.risk.evaluation.simulations`).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    requested_by = models.CharField(max_length=255)
    policies = models.JSONField()
    status = models.CharField(
        max_length=16, choices=SimulationStatus.choices, default=SimulationStatus.PENDING
    )
    events = models.BigIntegerField(default=0)
    progress = models.FloatField(default=0.0)
    checkpoint = models.BinaryField(default=b"")
    findings = models.JSONField(null=True)
    claims = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    leased_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)

    objects = SimulationQuerySet.as_manager()

    class Meta:
        verbose_name = "policy simulation"
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["tenant", "-created_at", "-id"], name="events_simulation_list"),
            models.Index(
                fields=["created_at"],
                condition=Q(status__in=["pending", "running"]),
                name="events_simulation_unfinished",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=SimulationStatus.values), name="events_simulation_status_known"
            ),
            models.CheckConstraint(
                condition=Q(status="ready", findings__isnull=False)
                | (~Q(status="ready") & Q(findings__isnull=True)),
                name="events_simulation_findings_when_ready",
            ),
            models.CheckConstraint(
                condition=Q(status__in=["ready", "failed"], completed_at__isnull=False, checkpoint=b"")
                | Q(status__in=["pending", "running"], completed_at=None),
                name="events_simulation_completed_when_over",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.created_at:%Y-%m-%d %H:%M:%S}"
