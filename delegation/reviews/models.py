"""Reviews of access, and the agents of each with what was decided on them."""

from datetime import datetime

from django.db import models
from django.db.models import CheckConstraint, Count, Exists, Index, OuterRef, Q, UniqueConstraint

from agents.models import MAX_EMAIL_LENGTH
from auditlog.vocabulary import Actor, ActorKind
from compliance.core.errors import Conflict, InvalidState, NotFound
from compliance.core.identifiers import new_id
from compliance.core.wording import counted
from compliance.stores.portions import PATIENCE, JobRows
from compliance.stores.tenant_keys import TenantForeignKey
from tenancy.jobs import AgentOfJob, TenantJob

QUARTER = "quarter"
MOST_NOTE = 400


class ReviewNotFound(NotFound):
    message = "Access review not found"


class ItemNotFound(NotFound):
    message = "The agent is not part of this access review"


class NothingToReview(InvalidState):
    message = "No agent matches that is not retired"


class NothingToReduce(InvalidState):
    message = (
        "The agent has no action to remove, or is stopped: its figures must be complete, or name actions"
    )


class AlreadyDecided(Conflict):
    message = "The agent is decided on already"


class ReviewUnfinished(InvalidState):
    message = "The access review is not finished"


class AccessReviewState(models.TextChoices):
    OPEN = "open"
    DONE = "done"


class AccessReviewDecision(models.TextChoices):
    KEEP = "keep"
    REDUCE = "reduce"
    SUSPEND = "suspend"
    RETIRE = "retire"


def is_undecided(prefix: str = "") -> Q:
    """Match the items that wait for a decision, or for another where it was refused."""
    return Q(**{f"{prefix}applied_at": None, f"{prefix}next_try_at": None})


class AccessReviewQuerySet(JobRows["AccessReview"]):
    """Reviews of the current environment."""

    missing = ReviewNotFound
    is_unfinished = Q(state=AccessReviewState.OPEN)

    def idle(self, now: datetime) -> "AccessReviewQuerySet":
        """Filter by those to be ended, or with decisions to carry out of which no process claimed one."""
        unapplied = AccessReviewItem.objects.filter(applied_at=None)
        due = unapplied.filter(next_try_at__lte=now).values("review_id")
        claimed = unapplied.filter(next_try_at__gt=now, next_try_at__lte=now + PATIENCE).values("review_id")
        is_to_end = ~Exists(unapplied.filter(review=OuterRef("pk")))
        return self.unfinished().filter(Q(id__in=due) | is_to_end).exclude(id__in=claimed)

    def with_undecided(self) -> "AccessReviewQuerySet":
        """Add `undecided`: how many agents are."""
        return self.annotate(undecided=Count("agents", filter=is_undecided("agents__")))

    def overdue(self, now: datetime) -> "AccessReviewQuerySet":
        return self.unfinished().filter(due_at__lte=now)


class AccessReview(TenantJob):
    """A review of the agents that matched when it was opened.

    `match` as of stops. `next_at`: when a quarterly review is opened anew; the new one goes on with that.
    `overdue_at`: when that was escalated. `root`: the Merkle root of the record's lines; `record` is signed
    when it is first asked for.
    """

    match = models.JSONField()
    reviewer = models.CharField(max_length=MAX_EMAIL_LENGTH)
    state = models.CharField(max_length=8, choices=AccessReviewState.choices, default=AccessReviewState.OPEN)
    agent_count = models.PositiveIntegerField()
    due_at = models.DateTimeField()
    next_at = models.DateTimeField(null=True)
    overdue_at = models.DateTimeField(null=True)
    root = models.CharField(max_length=64, blank=True)
    record = models.TextField(null=True)  # noqa: DJ001

    objects = AccessReviewQuerySet.as_manager()

    class Meta(TenantJob.Meta):
        indexes = [
            Index(fields=["tenant", "-started_at", "-id"], name="reviews_tenant_time"),
            Index(fields=["due_at"], condition=Q(state="open"), name="reviews_open"),
            Index(fields=["next_at"], condition=Q(next_at__isnull=False), name="reviews_next"),
        ]
        constraints = [
            CheckConstraint(
                condition=Q(state="open", ended_at=None) | Q(state="done", ended_at__isnull=False),
                name="reviews_done_has_end",
            )
        ]

    def __str__(self) -> str:
        return counted(self.agent_count, "agent")

    @property
    def every(self) -> str | None:
        return QUARTER if self.next_at else None

    def is_overdue(self, now: datetime) -> bool:
        return self.state == AccessReviewState.OPEN and self.due_at <= now


class AccessReviewItem(AgentOfJob):
    """An agent of a review. `seen`: what was shown of it when it was decided on, but for its owner.

    `removed`: the actions that `reduce` takes away, or took before another decision. `applied_at`: when the
    decision was carried out; until then it is tried at `next_try_at`, and `problem` says why it was not.
    Without either it is undecided.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    review = TenantForeignKey(AccessReview, on_delete=models.PROTECT, related_name="agents")
    opened_at = models.DateTimeField()
    decision = models.CharField(max_length=8, choices=AccessReviewDecision.choices, blank=True)
    removed = models.JSONField(default=list)
    note = models.CharField(max_length=MOST_NOTE, blank=True)
    seen = models.JSONField(null=True)
    decided_by = models.CharField(max_length=255, blank=True)
    decided_by_kind = models.CharField(max_length=16, choices=ActorKind.choices, blank=True)
    decided_at = models.DateTimeField(null=True)
    applied_at = models.DateTimeField(null=True)
    next_try_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["-opened_at", "-id"]
        indexes = [
            Index(fields=["agent_id", "-decided_at"], name="reviews_of_agent"),
            Index(fields=["review"], condition=Q(applied_at=None), name="reviews_to_do"),
        ]
        constraints = [
            UniqueConstraint(fields=["review", "agent_id"], name="reviews_agent_once"),
            CheckConstraint(
                condition=Q(decision__in=["", *AccessReviewDecision.values]), name="reviews_decision"
            ),
            CheckConstraint(
                condition=Q(decision="", decided_at=None, applied_at=None)
                | (~Q(decision="") & Q(decided_at__isnull=False)),
                name="reviews_decided_has_time",
            ),
        ]

    @property
    def is_decided(self) -> bool:
        """Whether the decision stands: one that could not be carried out may be made anew."""
        return bool(self.decision) and not (self.problem and self.applied_at is None)

    @property
    def actor(self) -> Actor:
        return Actor(ActorKind(self.decided_by_kind), self.decided_by)
