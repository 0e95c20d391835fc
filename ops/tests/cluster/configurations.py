"""The configurations of etcd, Patroni and HAProxy, as text: no file is read or written here."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCOPE = "service"
# Patroni accepts no smaller ttl. A node whose Patroni is restarted gives the lock up at once; one that has
# vanished loses it when the ttl is over.
DYNAMIC: dict[str, Any] = {
    "ttl": 20,
    "loop_wait": 1,
    "retry_timeout": 3,
    # A primary that crashed is not started again in its place: the synchronous standby takes over.
    "primary_start_timeout": 0,
    # A commit is acknowledged once a standby has it too, and only that standby may be promoted.
    "synchronous_mode": True,
    "maximum_lag_on_failover": 0,
    # While etcd has no quorum the primary goes on as long as it reaches every other member.
    "failsafe_mode": True,
}
PARAMETERS: dict[str, Any] = {
    "max_connections": 300,
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "checkpoint_timeout": "5min",
    "jit": "off",
    "random_page_cost": 1.1,
    "timezone": "UTC",
    "log_timezone": "UTC",
    "synchronous_commit": "on",
    "wal_level": "replica",
    "wal_log_hints": "on",
    "wal_keep_size": "256MB",
    "max_wal_senders": 10,
    "max_replication_slots": 10,
    # A standby that has vanished is found out soon, and so is a client.
    "wal_sender_timeout": "2s",
    "wal_receiver_timeout": "2s",
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 1,
    "tcp_keepalives_count": 3,
    "unix_socket_directories": "",
    "fsync": "on",
    "full_page_writes": "on",
}


@dataclass(frozen=True)
class NodeAddress:
    """Where one node's programs listen."""

    name: str
    host: str
    postgres: int
    rest: int
    etcd: int
    etcd_peers: int


@dataclass(frozen=True)
class WebAddress:
    """Where one web node listens."""

    name: str
    port: int


def etcd_arguments(node: NodeAddress, nodes: Sequence[NodeAddress], data: Path) -> list[str]:
    """Return etcd's arguments; an election begins a second after the leader was heard last."""
    client, peer = f"http://{node.host}:{node.etcd}", f"http://{node.host}:{node.etcd_peers}"
    members = ",".join(f"{one.name}=http://{one.host}:{one.etcd_peers}" for one in nodes)
    return [
        "--name", node.name, "--data-dir", str(data), "--listen-client-urls", client,
        "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
        "--initial-cluster", members, "--initial-cluster-token", SCOPE, "--heartbeat-interval", "100",
        "--election-timeout", "1000", "--auto-compaction-retention", "1", "--log-level", "warn",
    ]  # fmt: skip


def patroni(
    node: NodeAddress, nodes: Sequence[NodeAddress], *, data: Path, programs: Path, passwords: dict[str, str]
) -> str:
    """Return a member's configuration (JSON, which is YAML); `passwords` by role."""
    names = {"superuser": "service", "replication": "replicator", "rewind": "rewinder"}
    network = "0.0.0.0/0"
    return json.dumps(
        {
            "scope": SCOPE,
            "name": node.name,
            "restapi": {
                "listen": f"{node.host}:{node.rest}",
                "connect_address": f"{node.host}:{node.rest}",
            },
            "etcd3": {"hosts": [f"{one.host}:{one.etcd}" for one in nodes]},
            "bootstrap": {
                "dcs": {
                    **DYNAMIC,
                    "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": PARAMETERS},
                },
                "initdb": [
                    {"encoding": "UTF8"}, {"locale": "C"}, {"locale-provider": "builtin"},
                    {"builtin-locale": "C.UTF-8"}, "data-checksums",
                ],
            },
            "postgresql": {
                "listen": f"{node.host}:{node.postgres}",
                "connect_address": f"{node.host}:{node.postgres}",
                "data_dir": str(data),
                "bin_dir": str(programs),
                "pgpass": str(data.parent / "pgpass"),
                "authentication": {
                    role: {"username": name, "password": passwords[role]} for role, name in names.items()
                },
                "pg_hba": [
                    f"host replication {names['replication']} {network} scram-sha-256",
                    f"host all all {network} scram-sha-256",
                ],
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
                "create_replica_methods": ["basebackup"],
                "basebackup": {"checkpoint": "fast"},
            },
            "watchdog": {"mode": "off"},
        },
        indent=1,
    )  # fmt: skip


CAPS = ("http-request track-sc1", "http-request return status 429")


def haproxy(
    nodes: Sequence[NodeAddress],
    webs: Sequence[WebAddress],
    *,
    host: str,
    postgres: int,
    web: int,
    shipped: str,
) -> str:
    """Return HAProxy's configuration: the primary on one port, the web nodes on the other.

    `shipped` is the text of deploy/haproxy/haproxy.cfg, from which the part of the web nodes is taken: it
    differs by its addresses, plain HTTP in place of TLS, one thread, no log of requests, no caps by source,
    as all load comes from one.
    """
    databases = "\n".join(
        f"    server {node.name} {node.host}:{node.postgres} check port {node.rest}" for node in nodes
    )
    sections = _sections(shipped)
    limits = _without(sections["global"], "log ")
    defaults = _without(sections["defaults"], "log ", "option httplog")
    frontend = _without(sections["frontend tls"], "bind ", "tcp-request ", *CAPS)
    backend = _without(sections["backend web"], "server ")
    scheme = "set-header X-Forwarded-Proto https"
    if scheme not in frontend:
        raise ValueError(f"HAProxy's shipped configuration has no {scheme}")
    servers = "\n".join(f"    server {one.name} {host}:{one.port} check" for one in webs)
    return f"""\
{limits}
    nbthread 1

defaults
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout check 2s

frontend postgres
    mode tcp
    bind {host}:{postgres}
    timeout client 1h
    option clitcpka
    default_backend primary

backend primary
    mode tcp
    timeout server 1h
    option httpchk OPTIONS /primary
    http-check expect status 200
    option srvtcpka
    default-server inter 500ms fastinter 250ms fall 2 rise 1 on-marked-down shutdown-sessions
{databases}

{defaults}

{frontend.replace(scheme, scheme.removesuffix("s"))}
    bind {host}:{web}

{backend}
{servers}
"""


def _sections(text: str) -> dict[str, str]:
    """Map each section's first line to the section, without comments."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not line.startswith(" "):
            name = line
        found.setdefault(name, []).append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def _without(section: str, *beginnings: str) -> str:
    """Return a section without the lines that begin so. Raises: ValueError if there is none."""
    lines = section.splitlines()
    for beginning in beginnings:
        if not any(line.strip().startswith(beginning) for line in lines):
            raise ValueError(f"HAProxy's shipped configuration has no line {beginning!r}")
    return "\n".join(line for line in lines if not line.strip().startswith(beginnings))
