"""System checks of the incidents' settings."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from compliance.incidents.duties.clocks import REGIMES


def check_regimes(**kwargs: Any) -> list[CheckMessage]:
    """Check that every regime is known: of a misspelt one no clock would run."""
    unknown = sorted(set(settings.INCIDENT_REGIMES) - set(REGIMES))
    if not unknown:
        return []
    text = f"INCIDENT_REGIMES has unknown names: {', '.join(unknown)}."
    return [checks.Error(text, f"Choose among {', '.join(REGIMES)}.", id="incidents.E001")]
