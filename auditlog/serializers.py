"""The audit log's rows as the API shows them."""

from rest_framework import serializers

from auditlog.models import AuditEntry


class AuditLogSerializer(serializers.ModelSerializer[AuditEntry]):
    """An AuditLog entry of the interface specification."""

    class Meta:
        model = AuditEntry
        fields = [
            "id",
            "event_type",
            "actor_type",
            "actor_id",
            "description",
            "affected_id",
            "metadata",
            "created_at",
        ]
        read_only_fields = fields
