"""The audit log's entries and the Merkle tree over them; triggers refuse changes."""

from datetime import UTC, datetime
from typing import Final

from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.fields.json import KT

from auditlog.querysets import AuditEntryQuerySet, LogKeyQuerySet
from auditlog.vocabulary import ActorKind, ActorType, AuditAction, audit_actions
from compliance.core.identifiers import new_id
from compliance.stores.rows import AppendOnlyRow

EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""Outside of these PostgreSQL knows moments that Python cannot read."""


class AuditEntry(AppendOnlyRow):
    """One recorded action. No foreign keys: an entry outlives the rows it names."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    event_type = models.CharField(max_length=64, choices=audit_actions)
    actor_type = models.CharField(max_length=16, choices=ActorType.choices)
    actor_kind = models.CharField(max_length=16, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=255)
    description = models.TextField(null=True)  # noqa: DJ001  (the specification's field is nullable)
    affected_id = models.CharField(max_length=255, null=True)  # noqa: DJ001
    metadata = models.JSONField(null=True)
    created_at = models.DateTimeField()

    objects = AuditEntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "audit entries"
        ordering = ["-created_at", "-id"]
        indexes = [
            Index(fields=["tenant_id", "-created_at", "-id"], name="auditlog_tenant_time"),
            Index(fields=["tenant_id", "event_type", "-created_at", "-id"], name="auditlog_tenant_type"),
            Index(fields=["tenant_id", "affected_id", "-created_at"], name="auditlog_tenant_affected"),
            # Whatever the tenant: a person acts in several, and is erased in all.
            Index(fields=["actor_id", "-created_at", "-id"], name="auditlog_actor_time"),
            # Anyone may ask when a message was signed.
            Index(
                KT("metadata__payload_hash"),
                F("created_at"),
                condition=Q(event_type=AuditAction.MESSAGE_SIGNED),
                name="auditlog_signed_payload",
            ),
        ]
        constraints = [
            CheckConstraint(condition=Q(actor_type__in=ActorType.values), name="auditlog_actor_type_known"),
            CheckConstraint(condition=Q(actor_kind__in=ActorKind.values), name="auditlog_actor_kind_known"),
            CheckConstraint(
                condition=Q(created_at__gte=EARLIEST, created_at__lt=LATEST), name="auditlog_created_at_sane"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.created_at:%Y-%m-%d %H:%M:%S}"


class PendingEntry(models.Model):
    """An entry that waits for its place in the tree; a trigger adds it in the entry's own transaction."""

    id = models.BigAutoField(primary_key=True)
    entry_id = models.UUIDField()


class Leaf(models.Model):
    """An entry's place in the tree and its salts; `erased`: commitments of parts whose salts are zeroed."""

    index = models.BigIntegerField(primary_key=True)
    entry_id = models.UUIDField(unique=True)
    salts = models.BinaryField()
    erased = models.JSONField(null=True)


class TreeTile(models.Model):
    """A tile of the tree (`auditlog.tlog.tiles`); the last one of each level grows until it is full."""

    pk = models.CompositePrimaryKey("level", "index")
    level = models.SmallIntegerField()
    index = models.BigIntegerField()
    hashes = models.BinaryField()

    class Meta:
        db_table = "auditlog_tile"


class TreeHead(models.Model):
    """The one row of the tree's size and root; `minimum_index` is the first entry whose contents are kept."""

    id = models.SmallIntegerField(primary_key=True, default=1)
    size = models.BigIntegerField()
    root = models.BinaryField()
    minimum_index = models.BigIntegerField(default=0)

    class Meta:
        constraints = [CheckConstraint(condition=Q(id=1), name="auditlog_one_tree")]


class SignedHead(models.Model):
    """A checkpoint as a signed note with its cosignatures; `has_quorum` as of the last of these."""

    size = models.BigIntegerField(primary_key=True)
    root = models.BinaryField()
    note = models.TextField()
    signed_at = models.DateTimeField()
    has_quorum = models.BooleanField(default=False)

    class Meta:
        indexes = [Index(fields=["size"], condition=Q(has_quorum=True), name="auditlog_witnessed")]


class WitnessState(models.Model):
    """The last answer of a witness of the policy; `problem` is empty after a cosignature."""

    name = models.CharField(primary_key=True, max_length=255)
    size = models.BigIntegerField(default=0)
    cosigned_at = models.DateTimeField(null=True)
    tried_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=255, default="", blank=True)


class LogKey(models.Model):
    """An Ed25519 key in the HSM, named as the log; its private half outlasts `retired_at` by an hour."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=255)
    public_key = models.BinaryField(unique=True)
    key_uri = models.CharField(max_length=2000)
    created_at = models.DateTimeField()
    active_from = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)
    destroyed_at = models.DateTimeField(null=True)

    objects = LogKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-active_from", "-id"]
        constraints = [
            UniqueConstraint(
                fields=["retired_at"],
                condition=Q(retired_at=None),
                nulls_distinct=False,
                name="auditlog_one_lasting_log_key",
            ),
            CheckConstraint(
                condition=Q(retired_at=None) | Q(retired_at__gte=F("active_from")),
                name="auditlog_log_key_retired_after_active",
            ),
            CheckConstraint(
                condition=Q(destroyed_at=None)
                | Q(retired_at__isnull=False, destroyed_at__gt=F("retired_at")),
                name="auditlog_log_key_destroyed_after_retired",
            ),
        ]

    def __str__(self) -> str:
        return self.name
