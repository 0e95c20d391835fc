"""The audit log as a Django app."""

from django.apps import AppConfig


class AuditLogConfig(AppConfig):
    name = "auditlog"
    verbose_name = "Audit log"
