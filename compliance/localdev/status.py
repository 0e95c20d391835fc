"""`./run status`: each part, whether it is up, its pid and where it listens."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from . import processes
from .console import StepFailed
from .databases import query
from .layout import Layout
from .ports import HOST, answers
from .redis import ping
from .servers import Servers
from .stack import health
from .state import read_json
from .supervisor import running_supervisor


@dataclass(frozen=True)
class Line:
    """One part as shown."""

    part: str
    up: bool
    pid: int | None
    where: str


def survey(layout: Layout) -> list[Line]:
    """Every part of the stack as it is now."""
    servers = Servers(layout)
    data = [_postgres(servers), _redis(servers), _softhsm(servers), *_key_hosts(servers)]
    return [*data, *_programs(layout, servers)]


def as_table(lines: list[Line]) -> str:
    """One aligned line for each part."""
    width = max(len(line.part) for line in lines)
    rows = (
        f"{'✓' if line.up else '✗'} {line.part:<{width}}  {'up  ' if line.up else 'down'}  "
        f"pid {line.pid or '-':<8} {line.where}"
        for line in lines
    )
    return "\n".join(rows)


def _postgres(servers: Servers) -> Line:
    if servers.given.database is not None:
        return Line("postgres", _answers_sql(servers.given.database[0]), None, "given by DATABASE_URL")
    process = servers.postgres.running()
    up = process is not None and _answers_sql(servers.postgres.url("postgres"))
    return Line(
        "postgres", up, process.pid if process else None, _address(servers.postgres.port()) if up else ""
    )


def _answers_sql(url: str) -> bool:
    try:
        return query(url, "SELECT 1", seconds=5) == ["1"]
    except StepFailed:
        return False


def _redis(servers: Servers) -> Line:
    given = servers.given.redis
    if given is not None:
        return Line("redis", _answers_tcp(given), None, "given by REDIS_URL")
    process, port = servers.redis.running(), servers.redis.port()
    up = process is not None and ping(port, servers.redis.password)
    return Line("redis", up, process.pid if process else None, _address(port) if up else "")


def _answers_tcp(url: str) -> bool:
    parts = urlsplit(url)
    return answers(parts.hostname or HOST, parts.port or 6379)


def _softhsm(servers: Servers) -> Line:
    tokens = servers.softhsm
    return Line("softhsm", tokens.made(), None, str(tokens.module.path))


def _key_hosts(servers: Servers) -> list[Line]:
    hosts = servers.key_hosts
    if not hosts.count:
        return []
    process = hosts.running()
    up = process is not None and hosts.serve()
    return [Line("keys", up, process.pid if process else None, str(hosts.folder))]


def _programs(layout: Layout, servers: Servers) -> list[Line]:
    supervisor = running_supervisor(layout)
    notes = read_json(layout.parts) if supervisor is not None else {}
    pids = notes.get("pids", {})
    lines = [Line("supervisor", supervisor is not None, supervisor.pid if supervisor else None, "")]
    for name in ("web", "worker", "sender", "beat"):
        pid = pids.get(name)
        up = pid is not None and processes.start_time(pid) is not None
        where = ""
        if name == "web" and up:
            answer = health(servers.base_url())
            up, where = answer == "200", servers.base_url() if answer == "200" else answer
        lines.append(Line(name, up, pid, where))
    return lines


def _address(port: int) -> str:
    return f"{HOST}:{port}"
