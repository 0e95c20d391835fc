"""The audit log as a Django app."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from auditlog.tlog.lines import Malformed
from auditlog.tlog.notes import check_name

MAX_ORIGIN = 250  # a column holds 255, and the sandbox's is longer by 5


def is_origin(name: str) -> bool:
    try:
        return len(check_name(name)) <= MAX_ORIGIN
    except Malformed:
        return False


@register
def check_origin(**kwargs: Any) -> list[CheckMessage]:
    origin: str = settings.AUDIT_LOG_ORIGIN
    if is_origin(origin):
        return []
    text = f"AUDIT_LOG_ORIGIN is {origin!r}: 1 to {MAX_ORIGIN} characters without spaces and plus signs."
    return [Error(text, "Use the log's address without the scheme.", id="auditlog.E001")]


class AuditLogConfig(AppConfig):
    name = "auditlog"
    verbose_name = "Audit log"
