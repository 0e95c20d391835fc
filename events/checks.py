"""System checks of the events' settings."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from compliance.compiling import runs_compiled
from events import scoring
from events.spans import Span

AI_ACT_DAYS = 184
"""Six months at their longest: what Articles 19 and 26(6) of Regulation (EU) 2024/1689 ask for at least."""


def check_settings(**kwargs: Any) -> list[CheckMessage]:
    """The retention covers the risk window and what the law asks for; the span of partitions is known."""
    found: list[CheckMessage] = []
    days, window = settings.EVENT_RETENTION_DAYS, settings.RISK_WINDOW.days
    if days < window:
        found.append(
            checks.Error(
                f"EVENT_RETENTION_DAYS is {days}: the rolling risk needs {window}.",
                hint=f"Keep events for {window} days at least, and {AI_ACT_DAYS} for the EU AI Act.",
                id="events.E001",
            )
        )
    elif days < AI_ACT_DAYS:
        found.append(
            checks.Warning(
                f"EVENT_RETENTION_DAYS is {days}: the EU AI Act asks for six months (Art. 19 and 26(6)).",
                hint=f"Set it to {AI_ACT_DAYS} or more.",
                id="events.W001",
            )
        )
    if settings.EVENT_PARTITION not in set(Span):
        found.append(checks.Error(f"EVENT_PARTITION must be one of {', '.join(Span)}.", id="events.E002"))
    return found


def check_compiled(**kwargs: Any) -> list[CheckMessage]:
    """A deployment scores with compiled modules."""
    if runs_compiled(scoring.__path__):
        return []
    return [
        checks.Warning(
            "The scorer runs interpreted, several times slower than compiled.",
            hint="Run python -m compliance.compiling; it takes a C compiler and Python's headers.",
            id="events.W002",
        )
    ]
