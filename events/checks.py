"""System checks of the events' settings."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.core.exceptions import ImproperlyConfigured
from django.db import Error

from auditlog.vocabulary import AI_ACT_DAYS, MICA_DAYS, RETENTIONS
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql
from events.archiving.spans import Span
from events.risk import scoring
from events.risk.compiling import runs_compiled

_FINANCIAL = "SELECT FROM agents_agent WHERE financial_scope IS NOT NULL LIMIT 1"


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """Check that the retention covers six months, and that the partitions' span is known."""
    found: list[CheckMessage] = []
    for name in RETENTIONS:
        if (days := getattr(settings, name)) < AI_ACT_DAYS:
            text = f"{name} is {days}: the EU AI Act asks for six months (Art. 19 and 26(6))."
            found.append(checks.Error(text, f"Set it to {AI_ACT_DAYS} or more.", id="events.E001"))
    if settings.EVENT_PARTITION not in set(Span):
        found.append(checks.Error(f"EVENT_PARTITION must be one of {', '.join(Span)}.", id="events.E002"))
    return found


def refuse_errors() -> None:
    """Raise ImproperlyConfigured for an error of the settings, so that no process starts with it."""
    for error in check_settings():
        raise ImproperlyConfigured(f"{error.msg} {error.hint or ''}".strip())


def retention_too_short() -> str:
    """Return what is wrong if records are kept for less than five years though MiCA may ask for them.

    That is where a live agent of any tenant has a `financial_scope`, retired or not.
    """
    short = [
        f"{name} is {getattr(settings, name)}" for name in RETENTIONS if getattr(settings, name) < MICA_DAYS
    ]
    with environments.use(Environment.LIVE):
        if not short or not sql.query(_FINANCIAL):
            return ""
    return f"{' and '.join(short)}, and agents have a financial scope: MiCA asks for five years"


def check_mica(**kwargs: Any) -> list[CheckMessage]:
    """Check that a deployment with financial agents keeps their events for five years."""
    try:
        problem = retention_too_short()
    except Error:
        return []  # wiring.W001 tells it
    hint = f"Set it to {MICA_DAYS} or more."
    return [checks.Warning(f"{problem} (Art. 68(9)).", hint, id="events.W003")] if problem else []


def check_compiled(**kwargs: Any) -> list[CheckMessage]:
    """Check that a deployment scores with compiled modules."""
    if runs_compiled(scoring.__path__):
        return []
    hint = "Run python -m events.risk.compiling; it takes a C compiler and Python's headers."
    slow = "The scorer runs interpreted, slower than compiled."
    return [checks.Warning(slow, hint, id="events.W002")]
