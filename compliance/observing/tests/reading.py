"""Read metrics in Prometheus' text format."""

from prometheus_client.parser import text_string_to_metric_families


def sample(text: str, name: str, **labels: str) -> float:
    """The value of one sample. Raises: KeyError if it is not there."""
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            if one.name == name and one.labels == labels:
                return float(one.value)
    raise KeyError(name, labels)
