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
from compliance.core import environments, patience
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.keys import backend_for
from compliance.stores import redis

OUTCOME_SECONDS = 0.5
MEANWHILE_SECONDS = 2.0  # what takes longer to answer than this counts as unavailable

Check = Callable[[], None]
"""Raises an error if the dependency does not answer."""
Outcome = dict[str, str]
"""By dependency: `ok` or `unavailable`."""


class Readiness:
    """The last outcome of this process: at most half a second old, or two while another request asks anew."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks = checks
        self._asking = Lock()
        self._last: tuple[float, Outcome] | None = None  # when (`monotonic()`), what

    def outcome(self) -> Outcome:
        """The last one while it is fresh, else what is found now.

        While another request asks, the last one serves for two seconds; then every dependency is
        `unavailable`, as nobody knows which of them hangs. Before the first, that request is waited for.
        """
        if fresh := self._younger_than(OUTCOME_SECONDS):
            return fresh
        # A dependency that hangs holds up one thread, not all that are asked meanwhile.
        if not self._asking.acquire(timeout=MEANWHILE_SECONDS if self._last is None else 0):
            return self._younger_than(MEANWHILE_SECONDS) or dict.fromkeys(self._checks, "unavailable")
        try:
            return self._younger_than(OUTCOME_SECONDS) or self._ask()
        finally:
            self._asking.release()

    def forget(self) -> None:
        """Ask at the next request."""
        self._last = None

    def _younger_than(self, seconds: float) -> Outcome | None:
        last = self._last
        return last[1] if last is not None and monotonic() < last[0] + seconds else None

    def _ask(self) -> Outcome:
        outcome = {name: _outcome(check) for name, check in self._checks.items()}
        self._last = monotonic(), outcome
        return outcome


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


def _outcome(check: Check) -> str:
    try:
        check()
    except (Error, RedisError, ServiceError):
        return "unavailable"
    return "ok"


def _database(alias: str) -> None:
    with patience.limited(MEANWHILE_SECONDS), connections[alias].cursor() as cursor:
        cursor.execute("SELECT 1")


def _redis() -> None:
    redis.ping()


def _hsm(environment: Environment) -> None:
    with environments.use(environment):
        backend_for(environment).check()


def _checks() -> dict[str, Check]:
    checks: dict[str, Check] = {"redis": _redis}
    for environment in Environment:
        checks[f"database_{environment.value}"] = partial(_database, environment.alias)
        checks[f"hsm_{environment.value}"] = partial(_hsm, environment)
    return dict(sorted(checks.items()))


readiness = Readiness(_checks())
