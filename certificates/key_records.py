"""Rows of wrapped agents' keys, and of the HSM's keys that wrap them."""

from django.db import models
from django.db.models import Index, Q, UniqueConstraint

from compliance.core.identifiers import new_id
from compliance.keys.base import KeyStorage, WrapMechanism

MAX_URI_LENGTH = 2_000
STORAGES = [(storage.value, storage.value) for storage in KeyStorage]
MECHANISMS = [(mechanism.value, mechanism.value) for mechanism in WrapMechanism]


class WrappingKey(models.Model):
    """An AES key in the HSM. The one that is not retired wraps; retired ones only unwrap, until destroyed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    key_uri = models.CharField(max_length=MAX_URI_LENGTH, unique=True)
    mechanism = models.CharField(max_length=32, choices=MECHANISMS)
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)
    destroyed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            UniqueConstraint(
                # Of a constant: at most one row.
                models.Value(1),
                condition=Q(retired_at=None),
                name="certificates_one_key_wraps",
            )
        ]

    def __str__(self) -> str:
        return self.key_uri


class WrappedAgentKey(models.Model):
    """The private half of an agent's key as `blob`, encrypted by the wrapping key.

    `key_uri` is what certificates, the pool and issuances call the key; it names no object of the token.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    key_uri = models.CharField(max_length=MAX_URI_LENGTH, unique=True)
    spki = models.BinaryField()
    wrapping_key = models.ForeignKey(WrappingKey, on_delete=models.PROTECT, related_name="wrapped_keys")
    blob = models.BinaryField()
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [Index(fields=["wrapping_key", "id"], name="certificates_wrapped_by")]

    def __str__(self) -> str:
        return self.key_uri
