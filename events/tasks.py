"""Scheduled tasks of the events; each is safe to repeat."""

import logging
from collections.abc import Callable
from typing import Any

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.tasks import task, task_calling
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

fade_risk = task_calling("events.fade_risk", rolling.fade_risk)
find_dormant = task_calling("events.find_dormant", dormancy.find_dormant, level=logging.INFO)
take_in_reviews = task_calling("events.take_in_reviews", reviewing.take_in_overdue, level=logging.INFO)
snapshot_scorer = task_calling("events.snapshot_scorer", snapshots.take)
pool_baselines = task_calling("events.pool_baselines", baselines.pool_new)
forget_snapshots = task_calling("events.forget_snapshots", snapshots.forget)
forget_spans = task_calling("events.forget_spans", otlp.forget)
stream = task_calling("events.stream", sending.send_new)
sweep_simulations = task_calling("events.sweep_simulations", simulations.sweep)


@task("events.sweep_high_risk")
def sweep_high_risk(**kwargs: Any) -> None:
    """Stop agents over the threshold that `ingest()` did not."""
    stopped = reactions.sweep(now=now())
    if stopped:
        log.warning("the sweep stopped %d agents over the high-risk threshold", stopped)


@task("events.end_dormancies")
def end_dormancies(**kwargs: Any) -> None:
    """End the dormancy of agents that report again."""
    log.debug("%d agents are no longer dormant", dormancy.end_dormancies())


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


@task(simulations.SIMULATE)
def simulate(*, simulation_id: str, **kwargs: Any) -> None:
    """Do the next step of a policy simulation, unless it is over or another worker is at it."""
    if not simulations.step(simulation_id=simulation_id, now=now()):
        log.info("simulation %s needs no step", simulation_id)


@task(MAINTAIN)
def maintain_partitions(**kwargs: Any) -> None:
    """Make partitions ahead, archive and drop outlived ones; what fails waits for the next run."""
    done = partitions.maintain(actor=Actor.system(MAINTAIN), now=now())
    if not done.is_complete:
        postponed = ", ".join(done.postponed) or "none"
        log.warning("partitions postponed: %s; default partition: %d rows", postponed, done.default_rows)
        for why in done.unarchived:
            log.error("not dropped for want of an archive: %s", why)
