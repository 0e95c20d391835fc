"""`GET /metrics`, and metrics of what is stored, read when asked for: queues, key pool, lists, audit log.

Every node that is asked tells the same, so rules take the maximum over nodes.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from django.conf import settings
from django.db import Error
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from auditlog.sealing import tree
from auditlog.submitting import gathering
from certificates.models import Certificate, CertificateAuthority, PooledKey, RevocationList
from certificates.querysets import ends_within
from certificates.services import ANNOUNCED_DAYS
from compliance.api.exceptions import error_response, not_found
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.core.tasks import oldest_waiting, waiting
from compliance.observing import metrics, metrics_server
from compliance.observing.metrics import PREFIX
from events.streaming import sending
from ops import heartbeat
from ops.doctor import MOST_COUNTED
from signals.models import Signal, Stream
from webhooks.models import Delivery

log = logging.getLogger(__name__)

Sample = tuple[str, Sequence[str], float]
"""A gauge's name, its labels beside the environment, and its value."""

ENDING_DAYS: Final = (*ANNOUNCED_DAYS, 90)
TEXTS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "webhooks_due": (f"Deliveries that are due, counted up to {MOST_COUNTED}", ()),
    "webhooks_oldest_due_seconds": ("Time since the oldest due delivery became due", ()),
    "signal_streams_due": (f"Streams with signals that are due, counted up to {MOST_COUNTED}", ()),
    "stream_lag_seconds": ("Time since a stream had nothing left to send", ("stream",)),
    "tasks_waiting": ("Messages of tasks that wait for a worker, of both environments", ()),
    "tasks_oldest_waiting_seconds": ("Time since the message was sent that a worker takes next", ()),
    "heartbeat_age_seconds": ("Time since a worker ran the task that beat schedules", ()),
    "key_pool_keys": ("Keys generated in advance", ()),
    "key_pool_wanted": ("Keys that the pool should have", ()),
    "crl_age_seconds": ("Time since the full list of a CA was issued", ("role",)),
    "crl_remaining_seconds": ("Time until the full list of a CA is out of date", ("role",)),
    "certificate_expires_in_days": ("Active certificates that end within `le` days", ("le",)),
    "audit_unsealed": ("Audit entries that wait to be sealed", ()),
    "audit_unsigned": ("Sealed audit entries that no checkpoint covers", ()),
    "audit_contradicted": ("1 if a witness knows another tree of the audit log, else 0", ()),
    "seal_lag_seconds": ("Age of the oldest audit entry that no checkpoint covers", ()),
    "part_up": ("Whether the figures of a part could be read", ("part",)),
}
"""The gauges by their names without the prefix: the text, and the labels beside the environment."""


class StoredState(Collector):
    """The gauges of both environments as of `now`; a part that does not answer has `part_up` 0."""

    def __init__(self, *, now: datetime) -> None:
        self._now = now

    def collect(self) -> Iterable[GaugeMetricFamily]:
        families = {
            name: GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["environment", *labels])
            for name, (text, labels) in TEXTS.items()
        }
        for environment in Environment:
            with environments.use(environment):
                for name, labels, value in _samples(self._now):
                    families[name].add_metric([environment.value, *labels], value)
        return families.values()


def _samples(now: datetime) -> Iterator[Sample]:
    for part, read in _PARTS.items():
        try:
            found, is_up = list(read(now)), True
        except (Error, RedisError, ServiceError, OSError) as error:
            log.warning("metrics of %s cannot be read: %s", part, type(error).__name__)
            found, is_up = [], False
        yield from found
        yield "part_up", (part,), float(is_up)


def _webhooks(now: datetime) -> Iterator[Sample]:
    due = Delivery.objects.due(now)
    yield "webhooks_due", (), due.order_by()[:MOST_COUNTED].count()
    oldest = due.order_by("next_attempt_at").values_list("next_attempt_at", flat=True).first()
    yield "webhooks_oldest_due_seconds", (), _since(oldest, now)


def _tasks(now: datetime) -> Iterator[Sample]:
    yield "tasks_waiting", (), waiting()
    yield "tasks_oldest_waiting_seconds", (), _since(oldest_waiting(), now)
    age = heartbeat.age(now=now)
    yield "heartbeat_age_seconds", (), heartbeat.KEPT_SECONDS if age is None else age.total_seconds()


def _lists(now: datetime) -> Iterator[Sample]:
    """Of each role's CAs the one that is worst off; a CA without a list counts as out of date."""
    ages: dict[str, float] = {}
    left: dict[str, float] = {}
    for authority in CertificateAuthority.objects.publishing(now).order_by("role", "id"):
        newest = RevocationList.objects.newest_of(authority)
        age = _since(newest.this_update if newest else authority.created_at, now)
        remaining = (newest.next_update - now).total_seconds() if newest else 0.0
        ages[authority.role] = max(age, ages.get(authority.role, age))
        left[authority.role] = min(remaining, left.get(authority.role, remaining))
    yield from (("crl_age_seconds", (role,), age) for role, age in ages.items())
    yield from (("crl_remaining_seconds", (role,), remaining) for role, remaining in left.items())


def _certificates(now: datetime) -> Iterator[Sample]:
    """Count, as a histogram's buckets do, the certificates that no successor has been issued for."""
    found = Certificate.objects.filter(ends_within(ENDING_DAYS[-1], now)).aggregate(
        **{f"days_{days}": Count("id", filter=ends_within(days, now)) for days in ENDING_DAYS}
    )
    for days in ENDING_DAYS:
        yield "certificate_expires_in_days", (str(days),), found[f"days_{days}"]


def _audit_log(now: datetime) -> Iterator[Sample]:
    backlog = tree.backlog()
    yield "audit_unsealed", (), backlog.unsealed
    yield "audit_contradicted", (), int(bool(gathering.contradiction()))
    yield "audit_unsigned", (), backlog.unsigned
    yield "seal_lag_seconds", (), _since(backlog.oldest, now)


def _since(moment: datetime | None, now: datetime) -> float:
    return 0.0 if moment is None else max(0.0, (now - moment).total_seconds())


_PARTS: Final[dict[str, Callable[[datetime], Iterable[Sample]]]] = {
    "webhooks": _webhooks,
    "signals": lambda now: [
        ("signal_streams_due", (), Stream.objects.due(now, Signal.objects.waiting())[:MOST_COUNTED].count())
    ],
    "streams": lambda now: [
        ("stream_lag_seconds", (each.name,), _since(each.caught_up_at, now)) for each in sending.positions()
    ],
    "tasks": _tasks,
    "key_pool": lambda now: [
        ("key_pool_keys", (), PooledKey.objects.count()),
        ("key_pool_wanted", (), settings.KEY_POOL_SIZE),
    ],
    "revocation_lists": _lists,
    "certificates": _certificates,
    "audit_log": _audit_log,
}


@csrf_exempt  # Another method is refused below; Django's check would answer it first, as a page.
@never_cache
def metrics_view(request: HttpRequest) -> HttpResponse:
    """404 without METRICS_TOKEN or METRICS_DIR, as for an unknown path; 401 without the token."""
    if not settings.METRICS_TOKEN or not metrics.is_shared:
        return not_found(request)
    if request.method not in ("GET", "HEAD"):
        return error_response(request, 405, "Method not allowed", {"Allow": "GET, HEAD"})
    if not metrics_server.is_authorized(request.headers.get("Authorization", "")):
        return error_response(
            request, 401, "Missing or invalid token", {"WWW-Authenticate": 'Bearer realm="metrics"'}
        )
    return HttpResponse(
        metrics_server.exposed([StoredState(now=now())]), content_type=metrics_server.CONTENT_TYPE
    )
