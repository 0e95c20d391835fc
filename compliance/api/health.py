"""`/health/live` (the process answers) and `/health/ready` (its dependencies do).

Load balancers ask often and must not be refused, so neither has a rate limit. `ready` asks the dependencies
twice a second at most, however many ask it, and by one request at a time.
"""

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from time import monotonic

from django.db import Error, connections
from drf_spectacular.utils import extend_schema
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.rest.views import PublicView
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.keys.registry import backend_for
from compliance.stores import redis

OUTCOME_SECONDS = 0.5
MEANWHILE_SECONDS = 2.0  # what takes longer to answer than this counts as unavailable

Check = Callable[[], object]
"""Raises an error if the dependency does not answer."""
Outcome = dict[str, str]
"""By dependency: `ok` or `unavailable`."""


class Readiness:
    """The last outcome of this process: at most half a second old, or two while another request asks anew."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks
        self._asking = Lock()
        self.last: Outcome | None = None  # None: the next request asks
        self._asked_at = 0.0  # `monotonic()`

    def outcome(self) -> Outcome:
        """The last one while it is fresh, else what is found now.

        While another request asks, the last one serves for two seconds; then every dependency is
        `unavailable`, as nobody knows which of them hangs. Before the first, that request is waited for.
        """
        # A dependency that hangs holds up one thread, not all that are asked meanwhile.
        if not self._asking.acquire(timeout=MEANWHILE_SECONDS if self.last is None else 0):
            if self.last is None or monotonic() >= self._asked_at + MEANWHILE_SECONDS:
                return dict.fromkeys(self._checks, "unavailable")
            return self.last
        try:
            if self.last is None or monotonic() >= self._asked_at + OUTCOME_SECONDS:
                found = {}
                for name, check in self._checks.items():
                    try:
                        check()
                        found[name] = "ok"
                    except (Error, RedisError, ServiceError):
                        found[name] = "unavailable"
                self.last, self._asked_at = found, monotonic()
            return self.last
        finally:
            self._asking.release()


class LiveView(PublicView):
    """200 while the process can answer at all."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        return Response({"status": "ok"})


class ReadyView(PublicView):
    """200 when every dependency answers, else 503; each is named with `ok` or `unavailable`."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        outcome = readiness.outcome()
        is_ready = all(found == "ok" for found in outcome.values())
        status = "ok" if is_ready else "unavailable"
        return Response({"status": status, "checks": outcome}, status=200 if is_ready else 503)


def _ask_database(environment: Environment) -> None:
    with environments.limit_answers(MEANWHILE_SECONDS), connections[environment.alias].cursor() as cursor:
        cursor.execute("SELECT 1")


def _ask_hsm(environment: Environment) -> None:
    with environments.use(environment):
        backend_for(environment).check()


readiness = Readiness(
    {
        **{f"database_{one.value}": partial(_ask_database, one) for one in Environment},
        **{f"hsm_{one.value}": partial(_ask_hsm, one) for one in Environment},
        "redis": lambda: redis.client().ping(),
    }
)
