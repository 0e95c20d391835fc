"""System checks of the audit log's settings."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

MAX_ORIGIN = 250  # a column holds 255, and the sandbox's is longer by 5


def is_origin(name: str) -> bool:
    """Whether a log can have this name (C2SP signed-note)."""
    return 1 <= len(name) <= MAX_ORIGIN and "+" not in name and not any(map(str.isspace, name))


def check_origin(**kwargs: Any) -> list[CheckMessage]:
    """Check that the log's name may name a key."""
    origin: str = settings.AUDIT_LOG_ORIGIN
    if is_origin(origin):
        return []
    text = f"AUDIT_LOG_ORIGIN is {origin!r}: 1 to {MAX_ORIGIN} characters without spaces and plus signs."
    return [checks.Error(text, "Use the log's address without the scheme.", id="auditlog.E001")]
