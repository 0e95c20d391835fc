"""The parts of the service in the current environment: the doctor's checks of each, and figures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import Error
from django.template.defaultfilters import filesizeformat
from django.utils.text import capfirst
from redis.exceptions import RedisError

from auditlog.sealing import tree
from certificates.issuing import key_pool
from certificates.models import CertificateAuthority, PooledKey, RevocationList
from compliance.core import environments, tasks
from compliance.core.errors import ServiceError
from compliance.ops import doctor, heartbeat
from compliance.ops.doctor import MOST_COUNTED, Finding
from compliance.stores import redis, sql
from webhooks.models import Delivery

_DATABASE: Final = """
SELECT current_setting('server_version'), pg_size_pretty(pg_database_size(current_database())),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    current_setting('max_connections')
"""
Figures = dict[str, Any]
"""Figures by label."""


@dataclass(frozen=True)
class SystemPart:
    """The names of the doctor's checks that say whether a part is well, and its figures."""

    checks: tuple[str, ...]
    figures: Callable[[datetime], Figures]


@dataclass(frozen=True)
class PartState:
    """A part: what is wrong, empty if nothing, and figures with their labels."""

    name: str
    problem: str
    figures: tuple[tuple[str, str], ...] = ()


def database(now: datetime) -> Figures:
    ((version, size, used, most),) = sql.query(_DATABASE)
    return {"PostgreSQL": version, "Size": size, "Connections": f"{used} of {most}"}


def memory_store(now: datetime) -> Figures:
    nodes = redis.described()
    newest = nodes[0]
    name, version = newest.get("server_name", "redis"), newest.get("valkey_version", newest["redis_version"])
    return {
        "Server": f"{name} {version}",
        **({"Nodes": len(nodes)} if len(nodes) > 1 else {}),
        "Memory": filesizeformat(sum(node["used_memory"] for node in nodes)),
        "Clients": sum(node["connected_clients"] for node in nodes),
    }


def hsm(now: datetime) -> Figures:
    return {"Keys ready for agents": f"{PooledKey.objects.count()} of {key_pool.wanted()}"}


def workers(now: datetime) -> Figures:
    age, waiting = heartbeat.age(now=now), redis.broker().llen(tasks.QUEUE)
    seen = "none within the hour" if age is None else f"{age.seconds} s ago"
    return {"Last heartbeat": seen, "Messages waiting": waiting}


def senders(now: datetime) -> Figures:
    due = Delivery.objects.due(now).order_by()[:MOST_COUNTED].count()
    return {"Deliveries due": f"{due}{' or more' if due == MOST_COUNTED else ''}"}


def sealing(now: datetime) -> Figures:
    backlog = tree.backlog()
    return {"Waiting to be sealed": backlog.unsealed, "To be signed": backlog.unsigned}


def authorities(now: datetime) -> Figures:
    found = CertificateAuthority.objects.in_service().order_by("role", "id")
    return {each.common_name: f"until {each.not_after:%Y-%m-%d}" for each in found}


def lists(now: datetime) -> Figures:
    figures = {}
    authorities = list(CertificateAuthority.objects.publishing(now).order_by("role", "id"))
    found = RevocationList.objects.newest_of_each(authorities)
    for authority in authorities:
        newest = found.get(authority.pk)
        figures[authority.common_name] = (
            f"of {newest.this_update:%Y-%m-%d %H:%M}, the next by {newest.next_update:%Y-%m-%d %H:%M} UTC"
            if newest
            else "none"
        )
    return figures


PARTS: Final = {
    "Database": SystemPart(("database",), database),
    "Redis": SystemPart(("redis",), memory_store),
    "HSM": SystemPart(("hsm", "hsm parts", "key pool"), hsm),
    "Workers": SystemPart(("workers and beat",), workers),
    "Webhook senders": SystemPart(("webhook senders",), senders),
    "Audit log": SystemPart(("audit log", "audit log sealing"), sealing),
    "Authorities": SystemPart(("certificate authorities",), authorities),
    "Revocation lists": SystemPart(("revocation lists",), lists),
}


def look(now: datetime) -> list[PartState]:
    """Return the state of each part of the current environment, as the doctor's checks find it."""
    wanted = {check for part in PARTS.values() for check in part.checks}
    findings = doctor.examine(chosen=[environments.current()], fix=False, now=now, only=wanted)
    by_name = {finding.check: finding for finding in findings}
    return [_state(name, part, by_name, now) for name, part in PARTS.items()]


def _state(name: str, part: SystemPart, findings: Mapping[str, Finding], now: datetime) -> PartState:
    bad = [finding for check in part.checks if not (finding := findings[check]).ok]
    down = next((finding.detail for finding in bad if finding.is_down), None)
    if down is not None:
        return PartState(name, f"Does not answer ({down})")
    try:
        figures = part.figures(now)
    except (Error, RedisError, ServiceError, OSError) as error:
        return PartState(name, f"Does not answer ({type(error).__name__})")
    problem = capfirst("; ".join(finding.detail for finding in bad))
    return PartState(name, problem, tuple((label, str(value)) for label, value in figures.items()))
