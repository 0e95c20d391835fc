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


UNKNOWN = "!{ var(txn.agent) -m found }"
AGENT_SOURCES = (
    ("req.hdr(x-agent-id)", ""),
    ("path,field(4,/)", f"{{ path_beg /v1/agents/ }} {UNKNOWN}"),
    ("req.body,json_query('$.agent_id')", f"{{ path /v1/events }} {UNKNOWN}"),
    ("req.body,json_query('$.agentId')", f"{{ path /v1/events }} {UNKNOWN}"),
    ("rand(1000000)", UNKNOWN),
)
"""Where HAProxy finds the id of a request's agent, in this order, and the condition under which it looks."""


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
        *("--name", node.name, "--data-dir", str(data)),
        *("--listen-client-urls", client, "--advertise-client-urls", client),
        *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
        *("--initial-cluster", members, "--initial-cluster-token", SCOPE),
        *("--heartbeat-interval", "100", "--election-timeout", "1000"),
        *("--auto-compaction-retention", "1", "--log-level", "warn"),
    ]


def patroni(
    node: NodeAddress,
    nodes: Sequence[NodeAddress],
    *,
    data: Path,
    programs: Path,
    passwords: dict[str, str],
    more: dict[str, Any] | None = None,
) -> str:
    """Return a member's configuration (JSON, which is YAML).

    `passwords` by role; `more`: further parameters of PostgreSQL.
    """
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
                    "postgresql": {
                        "use_pg_rewind": True,
                        "use_slots": True,
                        "parameters": PARAMETERS | (more or {}),
                    },
                },
                "initdb": [
                    {"encoding": "UTF8"},
                    {"locale": "C"},
                    {"locale-provider": "builtin"},
                    {"builtin-locale": "C.UTF-8"},
                    "data-checksums",
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
    )


def haproxy(
    nodes: Sequence[NodeAddress], webs: Sequence[WebAddress], *, host: str, postgres: int, web: int, user: str
) -> str:
    """Return HAProxy's configuration: the primary on one port, the web nodes on the other.

    A request goes to the web node that its agent's id hashes to: from the header X-Agent-Id, the path, or the
    body of an event; the others go to any node.
    """
    databases = "\n".join(
        f"    server {node.name} {node.host}:{node.postgres} check port {node.rest}" for node in nodes
    )
    agents = "\n".join(
        f"    http-request set-var(txn.agent) {source}{' if' if found else ''} {found}".rstrip()
        for source, found in AGENT_SOURCES
    )
    servers = "\n".join(f"    server {one.name} {host}:{one.port} check" for one in webs)
    return f"""\
global
    maxconn 4096
    nbthread 1
{user}
defaults
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout check 2s

frontend postgres
    mode tcp
    bind {host}:{postgres}
    timeout client 1h
    default_backend primary

backend primary
    mode tcp
    timeout server 1h
    option httpchk OPTIONS /primary
    http-check expect status 200
    option clitcpka
    option srvtcpka
    default-server inter 500ms fastinter 250ms fall 2 rise 1 on-marked-down shutdown-sessions
{databases}

frontend web
    mode http
    bind {host}:{web}
    option http-buffer-request
    option forwardfor
    timeout http-request 10s
    timeout http-keep-alive 60s
{agents}
    default_backend web_nodes

backend web_nodes
    mode http
    balance hash var(txn.agent)
    hash-type consistent
    option httpchk
    http-check send meth GET uri /health/live ver HTTP/1.1 hdr Host localhost
    http-check expect status 200
    option redispatch 1
    retries 2
    # A request that may have reached a node is repeated only if that changes nothing.
    retry-on conn-failure empty-response
    http-request disable-l7-retry unless METH_GET
    default-server inter 500ms fastinter 250ms fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
"""
