"""`./run status`: each part, whether it is up, its pid and its address."""

from typing import NamedTuple
from urllib.parse import urlsplit

from redis import Redis, RedisError

from .console import StepFailed
from .layout import Layout
from .servers.databases import query
from .servers.servers import Servers
from .servers.supervisor import commands, running_supervisor
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
    contract, supervisor = servers.contract(), running_supervisor(layout)
    pids = read_json(layout.parts).get("pids", {}) if supervisor is not None else {}
    for name, process in (
        *(("postgres", servers.postgres.running()), ("redis", servers.redis.running())),
        ("supervisor", supervisor),
    ):
        pids |= {name: process.pid} if process is not None else {}
    database, cache, base_url = contract["DATABASE_URL"], contract["REDIS_URL"], servers.base_url()
    answer = health(base_url) if "web" in pids else ""
    found = {
        "postgres": (_answers(database), _address(database)),
        "redis": (_pings(cache), _address(cache)),
        "softhsm": (servers.softhsm.made(), str(servers.module)),
        "supervisor": (supervisor is not None, ""),
        **{name: (name in pids, "") for name in commands("", contract)},
        "web": (answer == "200", base_url if answer == "200" else answer),
    }
    return [PartStatus(name, up, pids.get(name), where) for name, (up, where) in found.items()]


def as_table(parts: list[PartStatus]) -> str:
    width = max(len(found.part) for found in parts)
    marks = {True: ("✓", "up  "), False: ("✗", "down")}
    return "\n".join(
        f"{marks[up][0]} {part:<{width}}  {marks[up][1]}  pid {pid or '-':<8} {where}"
        for part, up, pid, where in parts
    )


def _answers(url: str) -> bool:
    try:
        return query(url, "SELECT 1") == [(1,)]
    except StepFailed:
        return False


def _pings(url: str) -> bool:
    try:
        with Redis.from_url(url, socket_timeout=5, socket_connect_timeout=5) as client:
            return bool(client.ping())
    except RedisError:
        return False


def _address(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]
