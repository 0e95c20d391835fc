"""A certificate as a plain model."""

from django.db import models


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
