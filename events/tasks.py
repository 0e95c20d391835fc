"""Scheduled tasks of the events; each is safe to repeat."""

import logging
from collections.abc import Callable
from typing import Any

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.tasks import task
from compliance.stores.sweeps import each
from events import partitions
from events.activity import dormancy
from events.figures import days, usage
from events.inbox import reviewing
from events.ingest import reactions
from events.otlp import services as otlp
from events.risk import baselines, rolling, snapshots
from events.risk.evaluation import simulations
from events.streaming import sending

log = logging.getLogger(__name__)

MAINTAIN = "events.maintain_partitions"


@task("events.sweep_high_risk")
def sweep_high_risk(**kwargs: Any) -> None:
    """Stop agents over the threshold that `ingest()` did not."""
    stopped = reactions.sweep(now=now())
    if stopped:
        log.warning("the sweep stopped %d agents over the high-risk threshold", stopped)


@task("events.fade_risk")
def fade_risk(**kwargs: Any) -> None:
    """Write every agent's rolling risk as of now."""
    log.debug("wrote the rolling risk of %d agents", rolling.fade_risk(now=now()))


@task("events.find_dormant")
def find_dormant(**kwargs: Any) -> None:
    """Announce active agents without an event for long, and suspend those silent for longer."""
    if found := dormancy.find_dormant(now=now()):
        log.info("%d agents have fallen dormant or were suspended for it", found)


@task("events.end_dormancies")
def end_dormancies(**kwargs: Any) -> None:
    """End the dormancy of agents that report again."""
    log.debug("%d agents are no longer dormant", dormancy.end_dormancies())


@task("events.take_in_reviews")
def take_in_reviews(**kwargs: Any) -> None:
    """Take in the reviews that could not be taken in at the time."""
    taken = reviewing.take_in_overdue(now=now())
    if taken:
        log.info("took in overdue reviews of %d agents' events", taken)


@task("events.snapshot_scorer")
def snapshot_scorer(**kwargs: Any) -> None:
    """Snapshot the states of active agents."""
    log.debug("snapshots of %d agents", snapshots.take(now=now()))


@task("events.pool_baselines")
def pool_baselines(**kwargs: Any) -> None:
    """Pool new events into their tenants' baselines."""
    log.debug("pooled %d events", baselines.pool_new(now=now()))


@task("events.forget_snapshots")
def forget_snapshots(**kwargs: Any) -> None:
    """Delete the snapshots of agents that are retired or long silent."""
    log.debug("dropped %d snapshots", snapshots.forget(now=now()))


@task("events.forget_spans")
def forget_spans(**kwargs: Any) -> None:
    """Forget spans that are too old to be counted again."""
    log.debug("forgot %d spans", otlp.forget(now=now()))


@task("events.sum_up")
def sum_up(**kwargs: Any) -> None:
    """Add new events to the figures kept by day, and delete the days past their retention.

    A part that fails is left for the next run; the others go on.
    """
    moment = now()
    parts: dict[str, Callable[..., int | None]] = {
        "risk": rolling.sum_up,
        "figures": days.sum_up_days,
        "names": usage.sum_up,
        "old risk": rolling.forget,
        "old names": usage.forget,
    }
    each(parts, lambda part: parts[part](now=moment) or 0)


@task("events.stream")
def stream(**kwargs: Any) -> None:
    """Send new audit entries and events to the receivers of the settings."""
    log.debug("streamed %d records", sending.send_new(now=now()))


@task(simulations.SIMULATE)
def simulate(*, simulation_id: str, **kwargs: Any) -> None:
    """Do the next step of a policy simulation, unless it is over or another worker is at it."""
    if not simulations.step(simulation_id=simulation_id, now=now()):
        log.info("simulation %s needs no step", simulation_id)


@task("events.sweep_simulations")
def sweep_simulations(**kwargs: Any) -> None:
    """Enqueue policy simulations that were left unfinished."""
    simulations.sweep(now=now())


@task(MAINTAIN)
def maintain_partitions(**kwargs: Any) -> None:
    """Make partitions ahead, archive and drop outlived ones; what fails waits for the next run."""
    done = partitions.maintain(actor=Actor.system(MAINTAIN), now=now())
    if not done.is_complete:
        postponed = ", ".join(done.postponed) or "none"
        log.warning("partitions postponed: %s; default partition: %d rows", postponed, done.default_rows)
        for why in done.unarchived:
            log.error("not dropped for want of an archive: %s", why)
