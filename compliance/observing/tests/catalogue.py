"""The metrics that the code has, to hold documents, rules and dashboards against."""

from collections.abc import Iterator

from prometheus_client import Counter, Histogram

from compliance.observing import metrics
from ops import gauges


def documented_names() -> dict[str, set[str]]:
    """Each metric with its labels; counters end in `_total`, histograms have no suffix."""
    return {name: set(labels) for name, _, labels in _all()}


def series() -> dict[str, set[str]]:
    """Each name that a query may use, with the labels that its series have."""
    found: dict[str, set[str]] = {}
    for name, kind, labels in _all():
        if kind == "histogram":
            found |= {f"{name}_sum": set(labels), f"{name}_count": set(labels)}
            found[f"{name}_bucket"] = {*labels, "le"}
        else:
            found[name] = set(labels)
    return found


def bounds() -> dict[str, set[str]]:
    """The values of `le` of each histogram's buckets."""
    return {
        f"{one._name}_bucket": {*map(str, one._upper_bounds), "+Inf"}
        for one in collectors()
        if isinstance(one, Histogram)
    }


def collectors() -> list[Counter | Histogram]:
    """The metrics that processes count."""
    return [one for one in metrics.registry._collector_to_names if isinstance(one, Counter | Histogram)]


def _all() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for one in collectors():
        is_counter = isinstance(one, Counter)
        yield f"{one._name}{'_total' if is_counter else ''}", one._type, tuple(one._labelnames)
    for name, (_, labels) in gauges.TEXTS.items():
        yield f"{metrics.PREFIX}_{name}", "gauge", ("environment", *labels)
