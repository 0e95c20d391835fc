"""The events table's columns as a plain model over a table of the same shape."""

from django.db import models
from uuid_utils import compat

ACTION_TYPES = (
    "api_call", "authentication_attempt", "authentication_failure", "data_access", "data_mutation",
    "transaction_initiated", "transaction_anomaly", "unauthorized_access_attempt", "message_signed",
    "message_verification_failed",
)  # fmt: skip


class PlainEvent(models.Model):
    """One reported action."""

    id = models.UUIDField(primary_key=True, default=compat.uuid7)
    tenant_id = models.UUIDField()
    agent_id = models.UUIDField()
    action_type = models.CharField(max_length=32, choices=[(name, name) for name in ACTION_TYPES])
    risk_score = models.FloatField(default=0.05)
    risk_band = models.CharField(max_length=8, default="low")
    occurred_at = models.DateTimeField()
    received_at = models.DateTimeField()
    details = models.JSONField(default=dict)
    session_id = models.CharField(max_length=255, null=True)  # noqa: DJ001
    chain_id = models.UUIDField(null=True)
    reasons = models.JSONField(default=list)
    model_version = models.CharField(max_length=32, default="none")

    class Meta:
        app_label = "plain"
        managed = False
        db_table = "ruler_drf"

    def __str__(self) -> str:
        return str(self.id)


class PlainCertificate(models.Model):
    """What a plain view reads of a certificate."""

    id = models.UUIDField(primary_key=True)
    serial_number = models.CharField(max_length=40, unique=True)
    status = models.CharField(max_length=16)
    agent_id = models.UUIDField()
    issued_at = models.DateTimeField()

    class Meta:
        app_label = "plain"
        managed = False
        db_table = "certificates_certificate"

    def __str__(self) -> str:
        return self.serial_number
