"""Events by the clock: the threshold's safety net, the fading of rolling risk, the table's partitions."""

import logging
from typing import Any

from auditlog.vocabulary import Actor
from compliance.clock import now
from compliance.tasks import task
from events import baselines, partitions, reviewing, risk_days, rolling, snapshots, threshold

log = logging.getLogger(__name__)

MAINTAIN = "events.maintain_partitions"


@task("events.sweep_high_risk")
def sweep_high_risk(**kwargs: Any) -> None:
    """Stop agents over the threshold that `ingest()` did not; safe to repeat."""
    stopped = threshold.sweep(now=now())
    if stopped:
        log.warning("the sweep stopped %d agents over the high-risk threshold", stopped)


@task("events.fade_risk")
def fade_risk(**kwargs: Any) -> None:
    """Write every agent's rolling risk as it now follows from its events; safe to repeat."""
    log.debug("wrote the rolling risk of %d agents", rolling.fade_risk(now=now()))


@task("events.take_in_reviews")
def take_in_reviews(**kwargs: Any) -> None:
    """Let the scorer's memory take in verdicts that it could not at the time; safe to repeat."""
    taken = reviewing.take_in_overdue(now=now())
    if taken:
        log.info("took in overdue reviews of %d agents' events", taken)


@task("events.snapshot_scorer")
def snapshot_scorer(**kwargs: Any) -> None:
    """Snapshot the states of active agents and pool what their tenants have in common; safe to repeat."""
    log.debug("snapshots of %d agents", snapshots.take(now=now()))
    log.debug("pooled %d events", baselines.pool_new(now=now()))


@task("events.forget_snapshots")
def forget_snapshots(**kwargs: Any) -> None:
    """Drop the snapshots of agents that are retired or long silent; safe to repeat."""
    log.debug("dropped %d snapshots", snapshots.forget(now=now()))


@task("events.sum_up_risk")
def sum_up_risk(**kwargs: Any) -> None:
    """Add new events to the daily sums, and forget the days past their retention; safe to repeat."""
    moment = now()
    log.debug("summed up %d events", risk_days.sum_up(now=moment))
    risk_days.forget(now=moment)


@task(MAINTAIN)
def maintain_partitions(**kwargs: Any) -> None:
    """Make partitions ahead and drop outlived ones; what could not be locked waits for the next run."""
    done = partitions.maintain(actor=Actor.system(MAINTAIN), now=now())
    if not done.is_complete:
        log.warning(
            "partitions postponed: %s; rows in the default partition: %d",
            ", ".join(done.postponed) or "none",
            done.default_rows,
        )
