"""System checks of the settings of delegation."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from delegation.proofs.replay import WithoutStore


def check_without_replay_store(**kwargs: Any) -> list[CheckMessage]:
    """Report an unknown value of DPOP_WITHOUT_REPLAY_STORE; at run time it would count as `refuse`."""
    if settings.DPOP_WITHOUT_REPLAY_STORE in list(WithoutStore):
        return []
    text = f"DPOP_WITHOUT_REPLAY_STORE is {settings.DPOP_WITHOUT_REPLAY_STORE!r}."
    return [checks.Error(text, f"Choose among {', '.join(WithoutStore)}.", id="delegation.E001")]
