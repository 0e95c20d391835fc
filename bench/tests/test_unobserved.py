"""The ruler of observability leaves nothing that observes."""

import subprocess
import sys

from django.conf import settings

LOOK = """
from prometheus_client import Counter, Histogram
from bench.rulers import unobserved
from compliance.observing import correlation, metrics
from compliance.observing.request_counts import loop_counts, note_now
unobserved.observe_nothing()
import compliance.serving.application
from events.risk import state_cache
note_now(method="POST", route="/v1/events", status=201, seconds=0.1)
loop_counts.note(method="POST", route="/v1/events", status=201, seconds=0.1)
loop_counts.of_groups(metrics.GROUP_SIZE, "/v1/events").observe(2)
loop_counts.flush()
with metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "script"):
    metrics.counter(metrics.SCORED, "live", "low", "3.0").inc(2)
assert correlation.begin([("x-request-id", "order-7")], began=1.0) == unobserved.NO_IDS
assert not [one for one in vars(metrics).values() if isinstance(one, Counter | Histogram)]
counted = [sample for family in metrics.registry.collect() for sample in family.samples]
assert not [sample for sample in counted if sample.value and not sample.name.endswith("_created")], counted
"""


def test_nothing_is_counted() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
