"""The audit log as a Django app."""

from django.apps import AppConfig
from django.core.checks import register

from auditlog.checks import check_origin


class AuditLogConfig(AppConfig):
    name = "auditlog"
    verbose_name = "Audit log"

    def ready(self) -> None:
        register(check_origin)
