"""The service's web server with nothing observed: no metrics, no ids, no log lines.

`python -m bench.rulers.unobserved` takes gunicorn's arguments. The service has no such switch: its functions
are replaced here, before anything that calls them is imported.
"""

import logging
from contextlib import ContextDecorator
from typing import Any

from gunicorn.app.wsgiapp import run
from prometheus_client import Counter, Histogram

from compliance.observing import correlation, logs, metrics, request_counts
from compliance.observing.correlation import Correlation

NO_IDS = Correlation("", "", "")


class Nothing(ContextDecorator):
    """Stands for a metric, or for a block that would be timed."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def labels(self, *values: str) -> "Nothing":
        return self

    def inc(self, amount: float = 1) -> None:
        pass

    def observe(self, amount: float) -> None:
        pass


NOTHING = Nothing()


def observe_nothing() -> None:
    """Replace what observes."""
    for name, value in list(vars(metrics).items()):
        if isinstance(value, Counter | Histogram):
            setattr(metrics, name, NOTHING)
    _replace(metrics, NOTHING, "timed", "counted")
    _replace(metrics, "", "environment")
    _replace(metrics, None, "observe")
    _replace(correlation, NO_IDS, "begin", "resume")
    _replace(correlation, None, "enter", "current")
    _replace(correlation, ("", ""), "stored")
    _replace(logs, None, "bind", "unbind")
    _replace(request_counts.RequestCounts, None, "note", "flush")
    _replace(request_counts.RequestCounts, NOTHING, "of_groups")
    logging.disable(logging.CRITICAL)


def _replace(holder: Any, answer: Any, *names: str) -> None:
    for name in names:
        getattr(holder, name)  # one that is gone would go on being measured under its new name
        setattr(holder, name, lambda *args, **kwargs: answer)


if __name__ == "__main__":
    observe_nothing()
    run()
