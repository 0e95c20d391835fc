"""A risk policy: which score is a strike, how many strikes stop an agent, and how events are scored."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock
from typing import Annotated, Any

import msgspec
from django.conf import settings

from agents.risk import HIGH
from compliance.core.errors import Invalid
from events.risk.scoring.reasons import WEIGHTS
from tenancy.alarm_budgets import LEAST_BUDGET, MOST_BUDGET


def is_breach(received: Sequence[datetime], *, strikes: int, window: timedelta) -> bool:
    """Return whether the last of an agent's high-risk events, given by times of receipt in order, stops it.

    Both ends of the window count.
    """
    return len(received) >= strikes and received[-1] - received[-strikes] <= window


SHARES = frozenset({"MARKED_ALONE"})  # those that are scores: above 0 and below 1
MOST_STRIKES, MOST_MINUTES, MOST_WEIGHT = 50, 7 * 24 * 60, 100
_applying = Lock()


class RiskPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`threshold`: the score from which an event is a strike; `weights`: those that differ, by name.

    Without `scope_rule` no agent has a declared scope. `alarm_budget`: that of every agent; None: its own.
    `rescored`: events are scored anew by this version of the model; otherwise their stored scores count.
    """

    threshold: float
    strikes: int
    window_minutes: float
    scope_rule: bool = True
    alarm_budget: float | None = None
    weights: dict[str, float] = {}
    rescored: bool = False

    @property
    def window(self) -> timedelta:
        return timedelta(minutes=self.window_minutes)


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an officer asks for in place of the live policy; `rescore`: by this version of the model."""

    threshold: Annotated[float, msgspec.Meta(gt=0, le=1)]
    strikes: Annotated[int, msgspec.Meta(ge=1, le=MOST_STRIKES)]
    window_minutes: Annotated[float, msgspec.Meta(gt=0, le=MOST_MINUTES)]
    scope_rule: bool = True
    alarm_budget: Annotated[float, msgspec.Meta(ge=LEAST_BUDGET, le=MOST_BUDGET)] | None = None
    weights: dict[str, Annotated[float, msgspec.Meta(ge=0, le=MOST_WEIGHT)]] = {}
    rescore: bool = False


def live_policy() -> RiskPolicy:
    """Return the policy that the service follows."""
    return RiskPolicy(
        threshold=HIGH,
        strikes=settings.HIGH_RISK_STRIKES,
        window_minutes=settings.HIGH_RISK_WINDOW.total_seconds() / 60,
    )


def candidate_of(changes: dict[str, Any]) -> RiskPolicy:
    """Return the candidate that a form describes. Raises Invalid, which says where it is wrong.

    New weights, no scope rule, an alarm budget or `rescore` have the events scored anew.
    """
    try:
        made = msgspec.convert(changes, Candidate)
    except msgspec.MsgspecError as error:
        raise Invalid(f"candidate: {error}") from error
    if unknown := sorted(made.weights.keys() - set(WEIGHTS)):
        raise Invalid(f"candidate: there is no weight {unknown[0]!r}; there are {', '.join(sorted(WEIGHTS))}")
    if no_share := sorted(name for name in SHARES & made.weights.keys() if not 0 < made.weights[name] < 1):
        raise Invalid(f"candidate: the weight {no_share[0]} is a score, above 0 and below 1")
    asked = msgspec.structs.asdict(made)
    changes_scores = made.weights or not made.scope_rule or made.alarm_budget is not None
    rescored = bool(asked.pop("rescore") or changes_scores)
    return RiskPolicy(**asked, rescored=rescored)


@contextmanager
def weighing(policy: RiskPolicy) -> Iterator[None]:
    """Score by the policy's weights inside the block.

    Weights belong to the process: blocks of several threads run one after the other, and a process that
    scores what agents report must not use this.
    """
    with _applying:
        before = {name: WEIGHTS[name] for name in policy.weights}
        try:
            WEIGHTS.update(policy.weights)
            yield
        finally:
            WEIGHTS.update(before)
