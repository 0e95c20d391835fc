"""The plain rule that the scorer is held against: is the destination new to the agent?

An event scores 1 if it is no read and names a place that none of its agent's earlier events named, else 0.
Its places are its `targets`, its `host`, and the host of a URL that it names as its resource. Nothing goes to
what else a mutation acts on (a file, a product, a repository); a second rule counts that too, and the scorer
is held against the better of both. They read the streams' own vocabulary and learn from every event, attacks
too.
"""

from collections import defaultdict
from collections.abc import Iterable

from bench.risk_model.regimes import Part
from events.risk.evaluation.backtest import READ, StreamEvent

MUTATION = "data_mutation"


def new_destinations(parts: Iterable[Part], *, apart: bool, resources: bool) -> list[float]:
    """1 for each judged event that goes somewhere new to its agent, else 0, in the order of the parts.

    With `resources` also for a mutation of a resource that is new to its agent.
    """
    return [score for part in parts for score in _scores(part, apart=apart, resources=resources)]


def places(row: StreamEvent, *, resources: bool) -> set[str]:
    """The places that an event names, without case; with `resources` also what a mutation acts on."""
    details = row.details if isinstance(row.details, dict) else {}
    resource = str(details.get("resource") or "")
    if resources and resource and row.action_type == MUTATION:
        return places(row, resources=False) | {resource.casefold()}
    named = [*details.get("targets", ()), details.get("host"), _host(resource) if "://" in resource else None]
    return {str(name).casefold() for name in named if name}


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def _scores(part: Part, *, apart: bool, resources: bool) -> Iterable[float]:
    before: defaultdict[str, set[str]] = defaultdict(set)
    for row in part.history:
        before[row.agent] |= places(row, resources=resources)
    during: defaultdict[str, set[str]] = defaultdict(set)
    for row in part.runs:
        met, named = during[row.run if apart else row.agent], places(row, resources=resources)
        yield float(row.action_type != READ and not named <= met | before[row.agent])
        met |= named
