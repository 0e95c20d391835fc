"""`/health/live` (the process answers) and `/health/ready` (its dependencies do).

Load balancers ask often and must not be refused, so neither has a rate limit. `ready` asks the dependencies
twice a second at most, however many ask it, and by one request at a time.
"""

from collections.abc import Callable
from functools import partial
from threading import Lock
from time import monotonic
from typing import NamedTuple

from django.db import Error, connections
from drf_spectacular.utils import extend_schema
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.response import Response

from compliance import environments, redis
from compliance.api.views import PublicView
from compliance.environments import Environment
from compliance.errors import ServiceError
from compliance.keys import backend_for

OUTCOME_SECONDS = 0.5

Outcome = dict[str, str]
"""By dependency: `ok` or `unavailable`."""


class Asked(NamedTuple):
    """What the dependencies answered, and when (`monotonic()`)."""

    at: float
    outcome: Outcome


class Readiness:
    """The last outcome of this process, at most half a second old where nobody is asking just now."""

    def __init__(self) -> None:
        self._asking = Lock()
        self._last: Asked | None = None

    def outcome(self) -> Outcome:
        """The last one while it is fresh, or while another request asks anew; else what is found now."""
        last = self._last
        if last is not None and monotonic() < last.at + OUTCOME_SECONDS:
            return last.outcome
        # A dependency that hangs holds up one thread, not all that are asked meanwhile.
        if not self._asking.acquire(blocking=last is None) and last is not None:
            return last.outcome
        try:
            if self._last is last:
                self._last = Asked(monotonic(), ask())
            return self._last.outcome  # type: ignore[union-attr]
        finally:
            self._asking.release()

    def forget(self) -> None:
        """Ask at the next request."""
        self._last = None


readiness = Readiness()


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


def ask() -> Outcome:
    """What each dependency answers now."""
    checks: dict[str, Callable[[], None]] = {"redis": _redis}
    for environment in Environment:
        checks[f"database_{environment.value}"] = partial(_database, environment.alias)
        checks[f"hsm_{environment.value}"] = partial(_hsm, environment)
    return {name: _outcome(check) for name, check in sorted(checks.items())}


def _outcome(check: Callable[[], None]) -> str:
    try:
        check()
    except (Error, RedisError, ServiceError):
        return "unavailable"
    return "ok"


def _database(alias: str) -> None:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT 1")


def _redis() -> None:
    redis.client().ping()


def _hsm(environment: Environment) -> None:
    with environments.use(environment):
        backend_for(environment).check()
