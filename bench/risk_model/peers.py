"""The peers, run by the benchmarks' own Python: tables of numbers in, each event's score and cost out.

IsolationForest sees all of a regime's events before it scores any, which flatters it; HalfSpaceTrees scores
each event and then learns from it.
"""

import json
import sys
from time import perf_counter_ns
from typing import Any

from river.anomaly import HalfSpaceTrees  # type: ignore[import-not-found,unused-ignore]
from river.preprocessing import MinMaxScaler  # type: ignore[import-not-found,unused-ignore]
from sklearn.ensemble import IsolationForest  # type: ignore[import-not-found,unused-ignore]

SEED = 7
REPETITIONS = 3


def half_space_trees(events: list[list[float]], *, timed: bool) -> dict[str, Any]:
    """Scores, and if `timed` the nanoseconds of scoring and learning each event, fastest of some replays."""
    replays = [_replay(events) for _ in range(REPETITIONS if timed else 1)]
    costs = [min(each) for each in zip(*(costs for _, costs in replays), strict=True)]
    return {"scores": replays[0][0], "costs": costs if timed else []}


def _replay(events: list[list[float]]) -> tuple[list[float], list[int]]:
    scaler, trees = MinMaxScaler(), HalfSpaceTrees(seed=SEED)
    scores, costs = [], []
    for event in events:
        named = {str(index): value for index, value in enumerate(event)}
        start = perf_counter_ns()
        scaler.learn_one(named)
        scaled = scaler.transform_one(named)
        scores.append(trees.score_one(scaled))
        trees.learn_one(scaled)
        costs.append(perf_counter_ns() - start)
    return scores, costs


def isolation_forest(events: list[list[float]]) -> dict[str, Any]:
    """Scores of a forest grown on the very events."""
    forest = IsolationForest(random_state=SEED, n_jobs=1).fit(events)
    return {"scores": [-score for score in forest.score_samples(events)], "costs": []}


def main() -> None:
    tables: dict[str, tuple[list[list[float]], bool]] = json.load(sys.stdin)
    json.dump(
        {
            name: {
                "HalfSpaceTrees": half_space_trees(events, timed=timed),
                "IsolationForest": isolation_forest(events),
            }
            for name, (events, timed) in tables.items()
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
