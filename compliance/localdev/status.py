"""`./run status`: each part, whether it is up, its pid and its address."""

from typing import NamedTuple
from urllib.parse import urlsplit

from .console import StepFailed
from .layout import Layout
from .ports import HOST, answers
from .servers import processes
from .servers.databases import query
from .servers.redis import ping
from .servers.servers import Servers
from .servers.supervisor import running_supervisor
from .stack import health
from .state import read_json


class PartStatus(NamedTuple):
    """A row of the table."""

    part: str
    up: bool
    pid: int | None
    where: str


def survey(layout: Layout) -> list[PartStatus]:
    servers = Servers(layout)
    tokens = PartStatus("softhsm", servers.softhsm.made(), None, str(servers.softhsm.module.path))
    return [_postgres(servers), _redis(servers), tokens, *_programs(layout, servers)]


def as_table(parts: list[PartStatus]) -> str:
    width = max(len(found.part) for found in parts)
    marks = {True: ("✓", "up  "), False: ("✗", "down")}
    return "\n".join(
        f"{marks[up][0]} {part:<{width}}  {marks[up][1]}  pid {pid or '-':<8} {where}"
        for part, up, pid, where in parts
    )


def _server(part: str, process: processes.Record | None, *, serves: bool, where: str) -> PartStatus:
    up = process is not None and serves
    return PartStatus(part, up, process.pid if process else None, where if up else "")


def _postgres(servers: Servers) -> PartStatus:
    if servers.given.database is not None:
        return PartStatus("postgres", _answers_sql(servers.given.database[0]), None, "given by DATABASE_URL")
    process, where = servers.postgres.running(), f"{HOST}:{servers.postgres.port()}"
    serves = process is not None and _answers_sql(servers.postgres.url("postgres"))
    return _server("postgres", process, serves=serves, where=where)


def _answers_sql(url: str) -> bool:
    try:
        return query(url, "SELECT 1", seconds=5) == ["1"]
    except StepFailed:
        return False


def _redis(servers: Servers) -> PartStatus:
    if servers.given.redis is not None:
        parts = urlsplit(servers.given.redis)
        up = answers(parts.hostname or HOST, parts.port or 6379)
        return PartStatus("redis", up, None, "given by REDIS_URL")
    port, serves = servers.redis.port(), ping(servers.redis.port(), servers.redis.password)
    return _server("redis", servers.redis.running(), serves=serves, where=f"{HOST}:{port}")


def _programs(layout: Layout, servers: Servers) -> list[PartStatus]:
    supervisor = running_supervisor(layout)
    pids = read_json(layout.parts).get("pids", {}) if supervisor is not None else {}
    parts = [_server("supervisor", supervisor, serves=True, where="")]
    for name in ("web", "worker", "urgent", "sender", "signals", "beat"):
        process = processes.record(pids[name]) if name in pids else None
        parts.append(_server(name, process, serves=True, where=""))
    if parts[1].up:
        answer, url = health(servers.base_url()), servers.base_url()
        parts[1] = PartStatus("web", answer == "200", parts[1].pid, url if answer == "200" else answer)
    return parts
