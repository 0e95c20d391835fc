"""Stops, and the agents that each of them matched when it began."""

from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint

from auditlog.vocabulary import Actor, ActorKind
from certificates.models import SERIAL_DIGITS
from compliance.core.errors import InvalidState, NotFound, TooEarly
from compliance.stores.portions import JobRows
from compliance.stores.tenant_keys import TenantForeignKey
from tenancy.jobs import AgentOfJob, TenantJob


class StopNotFound(NotFound):
    message = "Stop not found"


class StopNotReleasable(InvalidState):
    message = "Only a finished stop that put certificates on hold can be released"


class StopUnderWay(TooEarly):
    message = "The stop is still running; its receipt follows"


class StopState(models.TextChoices):
    RUNNING = "running"
    DONE = "done"
    RELEASING = "releasing"
    RELEASED = "released"


UNFINISHED = (StopState.RUNNING, StopState.RELEASING)


class StopOutcome(models.TextChoices):
    """What a stop did to an agent; `skipped`: it was stopped or retired already."""

    PENDING = "pending"
    STOPPED = "stopped"
    SKIPPED = "skipped"
    FAILED = "failed"


class AgentRelease(models.TextChoices):
    """What the release of a stop did to an agent; `kept`: it stays stopped, for another reason."""

    PENDING = "pending"
    RELEASED = "released"
    KEPT = "kept"


class StopQuerySet(JobRows["KindStop"]):
    """Stops of the current environment."""

    missing = StopNotFound
    is_unfinished = Q(state__in=UNFINISHED)


class KindStop(TenantJob):
    """A stop of all agents that match, whether for good (`revoke`) or by a hold.

    `match` is the request's, without an owner's address. `matched` counts its rows; the other counts grow
    with the work. `root` is the Merkle root of the receipt's lines, `worked_at` when a portion was last done.
    `receipt` is signed when it is first asked for.
    """

    match = models.JSONField()
    revoke = models.BooleanField()
    reason = models.CharField(max_length=500)
    reason_code = models.CharField(max_length=32)
    state = models.CharField(max_length=16, choices=StopState.choices, default=StopState.RUNNING)
    matched = models.PositiveIntegerField()
    stopped = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    released = models.PositiveIntegerField(default=0)
    worked_at = models.DateTimeField()
    root = models.CharField(max_length=64, blank=True)
    receipt = models.TextField(null=True)  # noqa: DJ001
    release_reason = models.CharField(max_length=500, blank=True)
    released_by = models.CharField(max_length=255, blank=True)
    released_by_kind = models.CharField(max_length=16, choices=ActorKind.choices, blank=True)
    released_at = models.DateTimeField(null=True)

    objects = StopQuerySet.as_manager()

    class Meta(TenantJob.Meta):
        verbose_name = "stop"
        indexes = [
            Index(fields=["tenant", "-started_at", "-id"], name="stops_tenant_time"),
            Index(fields=["started_at"], condition=Q(state__in=UNFINISHED), name="stops_unfinished"),
        ]
        constraints = [
            CheckConstraint(condition=Q(state__in=StopState.values), name="stops_state_known"),
            CheckConstraint(
                condition=Q(state="running", ended_at=None)
                | (~Q(state="running") & Q(ended_at__isnull=False)),
                name="stops_done_has_end",
            ),
            CheckConstraint(
                condition=Q(state="released", released_at__isnull=False) | ~Q(state="released"),
                name="stops_released_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.matched} agents: {self.reason}"

    @property
    def releasing_actor(self) -> Actor:
        return Actor(ActorKind(self.released_by_kind), self.released_by)


class StoppedAgent(AgentOfJob):
    """An agent of a stop, with the certificate that the stop ended.

    `decided_at` is when its outcome was decided: for `stopped` the moment from which it is refused.
    `suspended`: the stop suspended it, and did not only revoke. `told`: audit log and webhooks have it, or
    the audit log has that it could not be told.
    """

    id = models.BigAutoField(primary_key=True)
    stop = TenantForeignKey(KindStop, on_delete=models.PROTECT, related_name="agents")
    serial_number = models.CharField(max_length=SERIAL_DIGITS, null=True)  # noqa: DJ001
    outcome = models.CharField(max_length=16, choices=StopOutcome.choices, default=StopOutcome.PENDING)
    decided_at = models.DateTimeField(null=True)
    suspended = models.BooleanField(default=False)
    told = models.BooleanField(default=False)
    release = models.CharField(max_length=16, choices=AgentRelease.choices, blank=True)

    class Meta(AgentOfJob.Meta):
        indexes = [
            Index(fields=["agent_id"], name="stops_agents_by_agent"),
            Index(fields=["stop", "id"], condition=Q(outcome="pending"), name="stops_agents_to_stop"),
            Index(
                fields=["stop", "id"], condition=Q(outcome="stopped", told=False), name="stops_agents_to_tell"
            ),
            Index(fields=["stop", "id"], condition=Q(release="pending"), name="stops_agents_to_release"),
        ]
        constraints = [
            UniqueConstraint(fields=["stop", "agent_id"], name="stops_agent_once_a_stop"),
            CheckConstraint(condition=Q(outcome__in=StopOutcome.values), name="stops_outcome_known"),
            CheckConstraint(
                condition=Q(outcome="pending", decided_at=None)
                | (~Q(outcome="pending") & Q(decided_at__isnull=False)),
                name="stops_decided_has_time",
            ),
        ]
