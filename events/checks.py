"""System checks of the events' settings."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from events.listing.spans import Span
from events.risk import scoring
from events.risk.compiling import runs_compiled

AI_ACT_DAYS = 184  # six months, the least of Articles 19 and 26(6) of Regulation (EU) 2024/1689


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """Check that the retention covers the risk window and the law, and that the partitions' span is known."""
    found: list[CheckMessage] = []
    days, window = settings.EVENT_RETENTION_DAYS, settings.RISK_WINDOW.days
    if days < window:
        text = f"EVENT_RETENTION_DAYS is {days}: the rolling risk needs {window}."
        hint = f"Keep events for {window} days at least, and {AI_ACT_DAYS} for the EU AI Act."
        found.append(checks.Error(text, hint, id="events.E001"))
    elif days < AI_ACT_DAYS:
        text = f"EVENT_RETENTION_DAYS is {days}: the EU AI Act asks for six months (Art. 19 and 26(6))."
        found.append(checks.Warning(text, f"Set it to {AI_ACT_DAYS} or more.", id="events.W001"))
    if settings.EVENT_PARTITION not in set(Span):
        found.append(checks.Error(f"EVENT_PARTITION must be one of {', '.join(Span)}.", id="events.E002"))
    return found


def check_compiled(**kwargs: Any) -> list[CheckMessage]:
    """Check that a deployment scores with compiled modules."""
    if runs_compiled(scoring.__path__):
        return []
    hint = "Run python -m events.risk.compiling; it takes a C compiler and Python's headers."
    slow = "The scorer runs interpreted, slower than compiled."
    return [checks.Warning(slow, hint, id="events.W002")]
