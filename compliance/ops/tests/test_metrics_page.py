"""docs/observability.md names every metric, with its labels."""

import re
from pathlib import Path

from django.conf import settings
from prometheus_client import Counter, Histogram

from compliance.observing import metrics
from compliance.ops import gauges

PAGE = Path(settings.BASE_DIR) / "docs/observability.md"


def test_page_lists_every_metric_with_its_labels() -> None:
    rows = re.findall(r"^\| (.*`.*) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    listed = {name: labels.split(", ") for names, labels in rows for name in re.findall(r"`(\w+)`", names)}

    found = {f"{one._name}_total": one._labelnames for one in vars(metrics).values() if type(one) is Counter}
    found |= {one._name: one._labelnames for one in vars(metrics).values() if type(one) is Histogram}
    found = {name.removeprefix(f"{metrics.PREFIX}_"): list(labels) for name, labels in found.items()}
    found |= {name: ["environment", *labels] for name, (_, labels) in gauges._TEXTS.items()}

    assert listed == found
