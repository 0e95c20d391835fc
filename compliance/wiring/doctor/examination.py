"""Runs the checks, each by itself: one that can't be made is a finding, and the rest go on."""

from dataclasses import dataclass
from datetime import datetime

from django.db import Error
from redis.exceptions import RedisError

from compliance import environments
from compliance.environments import Environment
from compliance.errors import ServiceError
from compliance.wiring.doctor.checks import CHECKS, SHARED, Check


@dataclass(frozen=True)
class Finding:
    """What one check found. `is_down`: a dependency did not answer; `fixed`: what `--fix` did about it."""

    environment: str
    check: str
    ok: bool
    detail: str
    remedy: str = ""
    fixed: str = ""
    is_down: bool = False


def examine(*, chosen: list[Environment], fix: bool, now: datetime) -> list[Finding]:
    """All checks of the environments; with `fix` a bad one is repaired if it can be, and made again."""
    found = []
    with environments.use(chosen[0]):
        found += [_run(check, "all", fix=fix, now=now) for check in SHARED]
    for environment in chosen:
        with environments.use(environment):
            found += [_run(check, environment.value, fix=fix, now=now) for check in CHECKS]
    return found


def _run(check: Check, environment: str, *, fix: bool, now: datetime) -> Finding:
    try:
        problem = check.look(now)
        fixed = ""
        if problem and fix and check.repair is not None:
            fixed = check.repair(now)
            problem = check.look(now)
    except (Error, RedisError, ServiceError, OSError) as error:
        detail = error.message if isinstance(error, ServiceError) else type(error).__name__
        return Finding(environment, check.name, False, detail, check.remedy, is_down=True)
    return Finding(
        environment, check.name, not problem, problem or "ok", check.remedy if problem else "", fixed
    )
