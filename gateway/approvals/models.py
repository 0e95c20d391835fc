"""Approvals of single acts, from the question to the use of the receipt."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint

from agents.models import MAX_ACTION_NAME, MAX_EMAIL_LENGTH
from agents.risk import BANDS
from compliance.core.identifiers import new_id
from compliance.stores.rows import TenantRows
from events.models import ActionType
from gateway.approvals.errors import ApprovalNotFound
from tenancy.models import Tenant


class ApprovalStatus(models.TextChoices):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    USED = "used"


class DeciderKind(models.TextChoices):
    """Who decides: a person at the console, or the agent's owner by a link."""

    PERSON = "person"
    OWNER = "owner"


ENDING = (ApprovalStatus.PENDING, ApprovalStatus.APPROVED)
"""The statuses that become expired with time."""
MAX_NOTE_LENGTH = 1000
KEPT = timedelta(days=30)
"""How long an ended approval is kept; the audit log keeps what happened."""


class ApprovalQuerySet(TenantRows["Approval"]):
    """Approvals of the current environment."""

    missing = ApprovalNotFound

    def overdue(self, now: datetime) -> "ApprovalQuerySet":
        """Return those that have expired and are not marked as expired yet."""
        return self.filter(status__in=ENDING, expires_at__lte=now)

    def old(self, now: datetime) -> "ApprovalQuerySet":
        """Return those that ended `KEPT` ago."""
        over = set(ApprovalStatus) - set(ENDING)
        return self.filter(status__in=over, expires_at__lte=now - KEPT)

    def pending(self, now: datetime) -> "ApprovalQuerySet":
        return self.filter(status=ApprovalStatus.PENDING, expires_at__gt=now)

    def ended(self, now: datetime) -> "ApprovalQuerySet":
        """Return those that wait no longer: decided, used or expired."""
        return self.exclude(status=ApprovalStatus.PENDING, expires_at__gt=now)

    def with_status(self, status: str | None, now: datetime) -> "ApprovalQuerySet":
        """Filter by `status_at(now)`; all without a status."""
        if status is None:
            return self
        if status == ApprovalStatus.EXPIRED:
            return self.filter(Q(status=status) | Q(status__in=ENDING, expires_at__lte=now))
        return self.filter(status=status).exclude(status__in=ENDING, expires_at__lte=now)


class Approval(models.Model):
    """A question whether an agent may do one act, its answer, and the use of the receipt.

    `action_hash` names the act in receipts. `decision_id`: the decision that asked, if one did. `expires_at`
    ends the wait for an answer and the use of the receipt alike. `jti` and `receipt`: of an approved one.
    `owner_email` and `owner_digest`: of the link that the agent's owner was sent, if any.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="approvals")
    agent_id = models.UUIDField()
    agent_name = models.CharField(max_length=255)
    action_name = models.CharField(max_length=MAX_ACTION_NAME)
    action_type = models.CharField(max_length=32, null=True)  # noqa: DJ001  (null in the API)
    details = models.JSONField()
    action_hash = models.CharField(max_length=64)
    risk_score = models.FloatField(null=True)
    risk_band = models.CharField(max_length=8, choices=[(band, band) for band in BANDS], null=True)  # noqa: DJ001
    reasons = models.JSONField()
    decision_id = models.UUIDField(null=True)
    status = models.CharField(max_length=16, choices=ApprovalStatus.choices, default=ApprovalStatus.PENDING)
    requested_by = models.CharField(max_length=255)
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=255, null=True)  # noqa: DJ001
    decided_by_kind = models.CharField(max_length=16, choices=DeciderKind.choices, null=True)  # noqa: DJ001
    note = models.CharField(max_length=MAX_NOTE_LENGTH, blank=True)
    used_at = models.DateTimeField(null=True)
    jti = models.UUIDField(null=True)
    receipt = models.TextField(null=True)  # noqa: DJ001
    owner_email = models.CharField(max_length=MAX_EMAIL_LENGTH, null=True)  # noqa: DJ001
    owner_digest = models.CharField(max_length=64, null=True)  # noqa: DJ001

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        ordering = ["-requested_at", "-id"]
        indexes = [
            Index(fields=["tenant", "-requested_at", "-id"], name="approvals_of_tenant"),
            Index(fields=["status", "expires_at"], name="approvals_by_status"),
        ]
        constraints = [
            UniqueConstraint(
                fields=["tenant", "agent_id", "action_hash", "action_type"],
                condition=Q(status="pending"),
                nulls_distinct=False,
                name="approvals_one_pending_a_type",
            ),
            CheckConstraint(condition=Q(status__in=ApprovalStatus.values), name="approvals_status_known"),
            CheckConstraint(
                condition=Q(risk_band=None) | Q(risk_band__in=BANDS), name="approvals_band_known"
            ),
            CheckConstraint(
                condition=Q(decided_by_kind=None) | Q(decided_by_kind__in=DeciderKind.values),
                name="approvals_decided_by_people",
            ),
            CheckConstraint(
                condition=Q(decided_at=None, decided_by=None, decided_by_kind=None)
                | Q(decided_at__isnull=False, decided_by__isnull=False, decided_by_kind__isnull=False),
                name="approvals_decided_when_and_by_whom",
            ),
            CheckConstraint(
                condition=(Q(status="pending") & Q(decided_at=None))
                | (Q(status__in=["approved", "denied", "used"]) & Q(decided_at__isnull=False))
                | Q(status="expired"),
                name="approvals_decision_with_status",
            ),
            CheckConstraint(
                condition=Q(jti=None, receipt=None) | Q(jti__isnull=False, receipt__isnull=False),
                name="approvals_jti_with_receipt",
            ),
            CheckConstraint(
                condition=Q(jti__isnull=False) | ~Q(status__in=["approved", "used"]),
                name="approvals_approved_has_receipt",
            ),
            CheckConstraint(
                condition=Q(status="used", used_at__isnull=False) | (~Q(status="used") & Q(used_at=None)),
                name="approvals_used_has_time",
            ),
            CheckConstraint(
                condition=Q(expires_at__gt=models.F("requested_at")), name="approvals_end_after_start"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_name}: {self.action_name}"

    def status_at(self, now: datetime) -> ApprovalStatus:
        """The status that counts: one that has ended is expired before it is marked so."""
        status = ApprovalStatus(self.status)
        return ApprovalStatus.EXPIRED if status in ENDING and now >= self.expires_at else status

    def shows(self, action_type: str | None, risk_band: str | None) -> bool:
        """Return whether people see this type of action, if it has one, and a band as high.

        As in an evaluation, an act of no stated type is an API call.
        """
        is_type = action_type in (None, self.action_type or ActionType.API_CALL)
        return is_type and BANDS.index(risk_band or BANDS[0]) <= BANDS.index(self.risk_band or BANDS[0])
