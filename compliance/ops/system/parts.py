"""The parts of the service that the current environment uses, each with figures that cost next to nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import Error
from redis.exceptions import RedisError

from auditlog.sealing import tree
from certificates.issuing import key_pool
from certificates.lists.crl import FULL
from certificates.models import CertificateAuthority, PooledKey, RevocationList
from compliance.core import environments
from compliance.core.errors import ServiceError
from compliance.keys import backend_for
from compliance.ops import heartbeat
from compliance.ops.doctor import CA_WARNING, SEALING_LATE
from compliance.stores import redis, sql
from webhooks.sending import wakeup

CELERY_QUEUE: Final = "celery"
MOST_COUNTED: Final = 10_000
DELIVERY_LATE: Final = timedelta(seconds=30)
_DATABASE: Final = """
SELECT current_setting('server_version'), pg_size_pretty(pg_database_size(current_database())),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')
"""
_DUE: Final = """
SELECT count(*), min(next_attempt_at) FROM (
    SELECT next_attempt_at FROM webhooks_delivery WHERE status = 'pending' AND next_attempt_at <= %s LIMIT %s
) due
"""


@dataclass(frozen=True)
class PartState:
    """A part: whether it is well, what is wrong if not, and figures with their labels."""

    name: str
    problem: str
    figures: tuple[tuple[str, str], ...] = ()


Figures = tuple[str, dict[str, Any]]
"""What is wrong, or nothing, and figures by label."""


def database(now: datetime) -> Figures:
    ((version, size, used, most),) = sql.query(_DATABASE)
    return "", {"PostgreSQL": version, "Size": size, "Connections": f"{used} of {most}"}


def memory_store(now: datetime) -> Figures:
    info: Any = redis.client().info()
    return "", {
        "Server": f"{info.get('server_name', 'redis')} {info.get('valkey_version', info['redis_version'])}",
        "Memory": info["used_memory_human"],
        "Clients": info["connected_clients"],
    }


def hsm(now: datetime) -> Figures:
    backend = backend_for(environments.current())
    backend.check()
    waiting, wanted = PooledKey.objects.count(), key_pool.wanted()
    problem = "; ".join(backend.problems())
    if not problem and waiting < wanted / 2:
        problem = "The key pool is low"
    return problem, {"Keys ready for agents": f"{waiting} of {wanted}"}


def workers(now: datetime) -> Figures:
    age, waiting = heartbeat.age(now=now), redis.client().llen(CELERY_QUEUE)
    is_late = age is None or age > heartbeat.LATE
    seen = "none within the hour" if age is None else f"{age.seconds} s ago"
    return "No heartbeat: beat or all workers are down" if is_late else "", {
        "Last heartbeat": seen,
        "Messages waiting": waiting,
    }


def senders(now: datetime) -> Figures:
    ((due, oldest),) = sql.query(_DUE, [now, MOST_COUNTED])
    problem = "" if wakeup.is_sender_alive() else "No webhook sender runs"
    if not problem and oldest is not None and now - oldest > DELIVERY_LATE:
        problem = f"A delivery is due since {oldest:%Y-%m-%d %H:%M:%S} UTC"
    return problem, {"Deliveries due": f"{due}{' or more' if due == MOST_COUNTED else ''}"}


def sealing(now: datetime) -> Figures:
    backlog = tree.backlog()
    is_late = backlog.oldest is not None and backlog.oldest < now - SEALING_LATE
    return "Sealing is late" if is_late else "", {
        "Waiting to be sealed": backlog.unsealed,
        "To be signed": backlog.unsigned,
    }


def authorities(now: datetime) -> Figures:
    found = list(CertificateAuthority.objects.in_service().order_by("role", "id"))
    ending = [each.common_name for each in found if each.not_after < now + CA_WARNING]
    problem = f"Ends within {CA_WARNING.days} days: {', '.join(ending)}" if ending else ""
    return problem if found else "There is no authority", {
        each.common_name: f"until {each.not_after:%Y-%m-%d}" for each in found
    }


def lists(now: datetime) -> Figures:
    figures, late = {}, []
    for authority in CertificateAuthority.objects.publishing(now).order_by("role", "id"):
        newest = RevocationList.objects.filter(authority=authority, scope=FULL).order_by("-number").first()
        if newest is None or newest.next_update <= now:
            late.append(authority.common_name)
        figures[authority.common_name] = (
            f"of {newest.this_update:%Y-%m-%d %H:%M}, the next by {newest.next_update:%Y-%m-%d %H:%M} UTC"
            if newest
            else "none"
        )
    return f"Out of date: {', '.join(late)}" if late else "", figures


PARTS: Final[dict[str, Callable[[datetime], Figures]]] = {
    "Database": database,
    "Redis": memory_store,
    "HSM": hsm,
    "Workers": workers,
    "Webhook senders": senders,
    "Audit log": sealing,
    "Authorities": authorities,
    "Revocation lists": lists,
}


def look(now: datetime) -> list[PartState]:
    """Return the state of each part of the current environment; what does not answer is said to be so."""
    return [_looked_at(name, part, now) for name, part in PARTS.items()]


def _looked_at(name: str, part: Callable[[datetime], Figures], now: datetime) -> PartState:
    try:
        problem, figures = part(now)
    except (Error, RedisError, ServiceError, OSError) as error:
        return PartState(name, f"Does not answer ({type(error).__name__})")
    return PartState(name, problem, tuple((label, str(value)) for label, value in figures.items()))
