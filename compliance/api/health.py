"""`/health/live` (the process answers) and `/health/ready` (its dependencies do)."""

from collections.abc import Callable
from functools import partial

from django.db import Error, connections
from django.http import HttpRequest, JsonResponse
from redis.exceptions import RedisError

from compliance import environments, redis
from compliance.environments import Environment
from compliance.errors import ServiceError
from compliance.keys import backend_for


def live(request: HttpRequest) -> JsonResponse:
    """200 while the process can answer at all."""
    return JsonResponse({"status": "ok"})


def ready(request: HttpRequest) -> JsonResponse:
    """200 when every dependency answers, else 503; each is named with `ok` or `unavailable`."""
    checks: dict[str, Callable[[], None]] = {"redis": _redis}
    for environment in Environment:
        checks[f"database_{environment.value}"] = partial(_database, environment.alias)
        checks[f"hsm_{environment.value}"] = partial(_hsm, environment)
    found = {name: _outcome(check) for name, check in sorted(checks.items())}
    is_ready = all(outcome == "ok" for outcome in found.values())
    status = "ok" if is_ready else "unavailable"
    return JsonResponse({"status": status, "checks": found}, status=200 if is_ready else 503)


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
