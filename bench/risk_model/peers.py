"""The peers, run by the benchmarks' own Python: tables of numbers in, each event's score or cost out.

IsolationForest sees all of a regime's events before it scores any, which flatters it; HalfSpaceTrees scores
each event and then learns from it.
"""

import gc
import json
import sys
from time import thread_time_ns

from river.anomaly import HalfSpaceTrees  # type: ignore[import-not-found,unused-ignore]
from river.preprocessing import MinMaxScaler  # type: ignore[import-not-found,unused-ignore]
from sklearn.ensemble import IsolationForest  # type: ignore[import-not-found,unused-ignore]

SEED = 7


def half_space_trees(events: list[list[float]]) -> tuple[list[float], list[int]]:
    """Scores, and the nanoseconds of scoring and learning each event."""
    scaler, trees = MinMaxScaler(), HalfSpaceTrees(seed=SEED)
    scores, costs = [], []
    _spare_garbage_collection()
    for event in events:
        named = {str(index): value for index, value in enumerate(event)}
        start = thread_time_ns()
        scaler.learn_one(named)
        scaled = scaler.transform_one(named)
        scores.append(trees.score_one(scaled))
        trees.learn_one(scaled)
        costs.append(thread_time_ns() - start)
    return scores, costs


def _spare_garbage_collection() -> None:
    """As `compliance.serving.garbage_collection` does, so that both sides have the same conditions."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 5)


def isolation_forest(events: list[list[float]]) -> list[float]:
    """Scores of a forest grown on the very events."""
    forest = IsolationForest(random_state=SEED, n_jobs=1).fit(events)
    return [-score for score in forest.score_samples(events)]


def main() -> None:
    """`peers.py figures` tells each table's scores by peer, `peers.py costs` all events' nanoseconds."""
    tables: dict[str, list[list[float]]] = json.load(sys.stdin)
    if sys.argv[1] == "costs":
        json.dump([cost for events in tables.values() for cost in half_space_trees(events)[1]], sys.stdout)
        return
    json.dump(
        {
            name: {
                "HalfSpaceTrees": half_space_trees(events)[0],
                "IsolationForest": isolation_forest(events),
            }
            for name, events in tables.items()
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
