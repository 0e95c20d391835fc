"""Events by the clock: the threshold's safety net, and the fading of rolling risk."""

import logging
from typing import Any

from compliance.clock import now
from compliance.tasks import task
from events import rolling, threshold

log = logging.getLogger(__name__)


@task("events.sweep_high_risk")
def sweep_high_risk(**kwargs: Any) -> None:
    """Stop agents over the threshold that `ingest()` did not; safe to repeat."""
    stopped = threshold.sweep(now=now())
    if stopped:
        log.warning("the sweep stopped %d agents over the high-risk threshold", stopped)


@task("events.fade_risk")
def fade_risk(**kwargs: Any) -> None:
    """Fade every agent's rolling risk to the present; safe to repeat."""
    log.debug("faded the rolling risk of %d agents", rolling.fade_risk(now=now()))
