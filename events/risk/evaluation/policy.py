"""A risk policy: which score is a strike, how many strikes stop an agent, and how events are scored."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Lock
from typing import Annotated, Any, Final

import msgspec
from django.conf import settings

from agents.risk import HIGH
from compliance.core.errors import Invalid
from events.risk.scoring import weights
from events.risk.scoring.model import MODEL_VERSION
from events.risk.strikes import is_breach

WEIGHTS: Final = tuple(
    sorted(name for name, value in vars(weights).items() if name.isupper() and isinstance(value, float))
)
SHARES = frozenset({"MARKED_ALONE"})  # those that are scores: above 0 and below 1
MOST_STRIKES, MOST_MINUTES, MOST_WEIGHT = 50, 7 * 24 * 60, 100
_applying = Lock()


class RiskPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`threshold`: the score from which an event is a strike; `weights`: those that differ, by name.

    Without `scope_rule` no agent has a declared scope. `rescored`: events are scored anew by this version of
    the model; otherwise their stored scores count.
    """

    threshold: float
    strikes: int
    window_minutes: float
    scope_rule: bool = True
    weights: dict[str, float] = {}
    rescored: bool = False

    @property
    def window(self) -> timedelta:
        return timedelta(minutes=self.window_minutes)

    def is_strike(self, score: float) -> bool:
        return score >= self.threshold

    def stops(self, received: Sequence[datetime]) -> bool:
        return is_breach(received, strikes=self.strikes, window=self.window)


class PolicyChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a candidate changes of the live policy; what it leaves out stays."""

    threshold: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    strikes: Annotated[int, msgspec.Meta(ge=1, le=MOST_STRIKES)] | None = None
    window_minutes: Annotated[float, msgspec.Meta(gt=0, le=MOST_MINUTES)] | None = None
    scope_rule: bool = True
    weights: dict[str, Annotated[float, msgspec.Meta(ge=0, le=MOST_WEIGHT)]] = {}
    rescore: bool = False
    model_version: str | None = None


def live_policy() -> RiskPolicy:
    """Return the policy that the service follows."""
    return RiskPolicy(
        threshold=HIGH,
        strikes=settings.HIGH_RISK_STRIKES,
        window_minutes=settings.HIGH_RISK_WINDOW.total_seconds() / 60,
    )


def candidate_of(changes: bytes | dict[str, Any], live: RiskPolicy) -> RiskPolicy:
    """Return the candidate of a JSON file's content or of a form's data. Raises Invalid, which says where.

    New weights, no scope rule, `rescore` or a `model_version` have the events scored anew.
    """
    try:
        made = (
            msgspec.json.decode(changes, type=PolicyChanges)
            if isinstance(changes, bytes)
            else msgspec.convert(changes, PolicyChanges)
        )
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"candidate: {error}") from error
    if unknown := sorted(made.weights.keys() - set(WEIGHTS)):
        raise Invalid(f"candidate: there is no weight {unknown[0]!r}; there are {', '.join(WEIGHTS)}")
    if no_share := sorted(name for name in SHARES & made.weights.keys() if not 0 < made.weights[name] < 1):
        raise Invalid(f"candidate: the weight {no_share[0]} is a score, above 0 and below 1")
    if made.model_version not in (None, MODEL_VERSION):
        raise Invalid(f"candidate: this version scores by model {MODEL_VERSION} only")
    return RiskPolicy(
        threshold=live.threshold if made.threshold is None else made.threshold,
        strikes=live.strikes if made.strikes is None else made.strikes,
        window_minutes=live.window_minutes if made.window_minutes is None else made.window_minutes,
        scope_rule=made.scope_rule,
        weights=made.weights,
        rescored=bool(made.weights or not made.scope_rule or made.rescore or made.model_version),
    )


@contextmanager
def weighing(policy: RiskPolicy) -> Iterator[None]:
    """Score by the policy's weights inside the block.

    Weights belong to the process: blocks of several threads run one after the other, and a process that
    scores what agents report must not use this.
    """
    with _applying:
        before = {name: getattr(weights, name) for name in policy.weights}
        try:
            _set(policy.weights)
            yield
        finally:
            _set(before)


def _set(values: dict[str, float]) -> None:
    for name, value in values.items():
        setattr(weights, name, value)
