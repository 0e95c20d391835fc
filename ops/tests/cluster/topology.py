"""The cluster as a whole: what is started in which order, and where everything is."""

import json
import os
import secrets
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from bench.harness.command import manage
from bench.harness.place import NO_LIMIT
from compliance.localdev.console import StepFailed, step
from compliance.localdev.environment import service_name
from compliance.localdev.ports import HOST, private_port
from compliance.localdev.servers import processes
from compliance.localdev.servers.postgres import DatabaseRole
from compliance.localdev.servers.redis import RedisServer
from compliance.localdev.servers.servers import Servers
from compliance.localdev.servers.softhsm import SoftHsm
from compliance.localdev.servers.supervisor import part_commands
from compliance.localdev.state import read_json, write_json, write_private
from ops.tests.cluster import configurations, members
from ops.tests.cluster.configurations import NodeAddress, WebAddress
from ops.tests.cluster.members import Keeper, Member, Program, ValkeyServer
from ops.tests.cluster.network import LOOPBACK, LogDisk, Network
from ops.tests.cluster.programs import Programs, clean, unprivileged

NODES = ("node-1", "node-2", "node-3")
WEBS = ("web-1", "web-2")
PARTS = ("worker", "urgent", "sender", "signals", "beat")
# Each is doubled, so that one goes on while the other starts; of beat one holds the lease.
KEY_HOSTS = 2
BACKGROUND = {f"{part}-{number}": part for number in (1, 2) for part in PARTS}
READY_SECONDS = 120.0


@dataclass
class Cluster:
    """One cluster in `folder`; `network` says where its database nodes are."""

    servers: Servers
    programs: Programs
    folder: Path
    network: Network = LOOPBACK
    log_disk: LogDisk | None = None
    keeper: Keeper = field(default_factory=Keeper)

    # --- Where everything is -----------------------------------------------------------------------

    @cached_property
    def nodes(self) -> tuple[NodeAddress, ...]:
        return tuple(
            NodeAddress(
                name,
                self.network.host(name),
                *(self._port(f"{name}-{kind}") for kind in ("postgres", "rest", "etcd", "peers")),
            )
            for name in NODES
        )

    @cached_property
    def webs(self) -> tuple[WebAddress, ...]:
        return tuple(WebAddress(name, self._port(name)) for name in WEBS)

    @cached_property
    def base_url(self) -> str:
        """The address of the balancer."""
        return f"http://{HOST}:{self._port('balancer')}"

    @cached_property
    def valkey(self) -> RedisServer:
        return RedisServer(self.folder / "valkey", self.folder / "valkey-ports.json", self._secret("valkey"))

    @cached_property
    def broker(self) -> RedisServer:
        return RedisServer(self.folder / "broker", self.folder / "broker-ports.json", self._secret("valkey"))

    @cached_property
    def tokens(self) -> SoftHsm:
        """Tokens that the key hosts share, as if they were a network HSM's."""
        return self.servers.tokens_in(self.folder / "softhsm", shards=8)

    @property
    def demo(self) -> dict[str, Any]:
        """The tenant and its API keys."""
        return read_json(self.folder / "demo.json")

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def url(self, database: str, role: DatabaseRole | None = None) -> str:
        """Return the address of a database of the primary, behind the balancer."""
        user = role or DatabaseRole("service", self._secret("superuser"))
        name, password, path = (quote(part, safe="") for part in (user.name, user.password, database))
        return f"postgres://{name}:{password}@{HOST}:{self._port('primary')}/{path}"

    @property
    def live_url(self) -> str:
        """The live database, as its owner."""
        return self.url(self.servers.database_names[0], self.servers.role("owner"))

    def environment(self, *, operator: bool = False) -> dict[str, str]:
        """Return the environment of a process of the service."""
        owner, role = self.servers.role("owner"), self.servers.role("service")
        live, test = self.servers.database_names
        whole = self.servers.environment(base_url=self.base_url)
        given = {name: value for name, value in whole.items() if not name.endswith("_PIN")}
        found = {
            **given, **self._without_pins(),
            **NO_LIMIT, "DJANGO_SETTINGS_MODULE": "compliance.settings",
            "PYTHONPATH": str(self.servers.layout.root), "SERVICE_NAME": service_name(os.environ),
            "DATABASE_URL": self.url(live, role), "TEST_DATABASE_URL": self.url(test, role),
            "REDIS_URL": self.valkey.url(), "BROKER_URL": self.broker.url(), "TRUSTED_PROXIES": HOST,
            "EVENT_ARCHIVE_DIR": str(self.folder / "archive"), "WEB_WORKERS": "1",
            "WEB_THREADS": "4", "WEBHOOK_SENDER_THREADS": "16",
        }  # fmt: skip
        found = {name: value for name, value in found.items() if not name.endswith("_OWNER_URL")}
        found.pop("KEY_POOL_SIZE", None)  # the shipped one
        if operator:
            found |= {"DATABASE_OWNER_URL": self.url(live, owner)}
            found |= {"TEST_DATABASE_OWNER_URL": self.url(test, owner)}
        return found

    # --- Starting and stopping ---------------------------------------------------------------------

    @contextmanager
    def running(self) -> Iterator[None]:
        """Everything up inside the block; afterwards everything is stopped, the data stays."""
        self._prepare()
        try:
            with self.network.up():
                self._start()
                yield
        finally:
            self.stop()

    def member(self, name: str) -> Member:
        """Return the member of that name."""
        return next(one for one in self.keeper.members if one.name == name)

    def stop(self) -> None:
        """Stop all members, those that depend on others first."""
        self.keeper.stop()
        for one in reversed(self.keeper.members):
            if isinstance(one, Program):
                one.stop()
        self._stop_servers()
        if self.log_disk is not None:
            self.log_disk.keep()

    def _stop_servers(self) -> None:
        self.valkey.stop()
        self.broker.stop()

    def manage(self, *arguments: str, accepted: tuple[int, ...] = (0,)) -> str:
        """Run a command of the service as its operator; return what it printed.

        Raises StepFailed on another exit code.
        """
        return manage(
            self.servers.layout.root, self.environment(operator=True), arguments, accepted=accepted,
            hint=f"read {self.log}",
        )  # fmt: skip

    def primary(self) -> str | None:
        """Return the name of the node whose Patroni says that it is the primary; None while none does."""
        return next((node.name for node in self.nodes if rest_status(node, "/primary") == 200), None)

    def etcd_leader(self) -> str | None:
        """Return the name of the node with etcd's leader; None while there is none."""
        for node in self.nodes:
            found = etcd_status(node)
            if found is not None and found["header"]["member_id"] == found.get("leader"):
                return node.name
        return None

    def synchronous_standbys(self) -> list[str]:
        """Return the standbys that a commit waits for."""
        with psycopg.connect(self.url("postgres"), connect_timeout=3) as connection:
            rows = connection.execute(
                "SELECT application_name FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
            )
            return [str(row[0]) for row in rows]

    def clear(self) -> None:
        """Remove all data, and end what a killed run left."""
        self._end_leftovers()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_leftovers(self) -> None:
        members.end_leftovers(self.folder)
        if self.folder.exists():
            self._stop_servers()

    def _prepare(self) -> None:
        for folder in (self.folder, self.log, self.folder / "archive", self.folder / "sockets"):
            folder.mkdir(mode=0o700, exist_ok=True, parents=True)
        if self.log_disk is not None:
            self.log_disk.mount()
        self._end_leftovers()

    def _start(self) -> None:
        with step("Valkey, and a broker"):
            self.broker.start()
            self.valkey.start()
        self.keeper.start()
        self._start_databases()
        with step("tokens, databases, CAs, a tenant"):
            self.tokens.ensure()
            self._make_databases()
            self._add(*(self._key_host(number) for number in range(KEY_HOSTS)))
            self.manage("bootstrap_dev", "--migrate", "--state", str(self.folder / "demo.json"))
        with step("two web nodes, and two of each part behind them"):
            self._add(*self._parts())
            self._wait("the web nodes did not start", self._is_serving)
        self.keeper.members.append(ValkeyServer(self.valkey))

    def _start_databases(self) -> None:
        with step("etcd: three members"):
            self._add(*(self._etcd(node) for node in self.nodes))
            self._wait("etcd elected no leader", lambda: self.etcd_leader() is not None)
        with step("PostgreSQL: a primary and two standbys under Patroni"):
            self._add(self._balancer(), *(self._patroni(node) for node in self.nodes))
            self._wait("PostgreSQL has no primary with a synchronous standby", self._is_replicated)

    def _add(self, *programs: Program) -> None:
        for program in programs:
            program.start()
            self.keeper.members.append(program)

    def _wait(self, failure: str, condition: Any) -> None:
        if not processes.wait_until(condition, seconds=READY_SECONDS, pause=0.2):
            raise StepFailed(failure, hint=f"read {self.log}")

    def _is_replicated(self) -> bool:
        try:
            return len(self.synchronous_standbys()) > 0
        except psycopg.Error:
            return False

    def _is_serving(self) -> bool:
        # The balancer keeps /health to the inside; 401 is the service's own answer.
        return (
            all(status_of(f"http://{HOST}:{web.port}/health/ready") == 200 for web in self.webs)
            and status_of(f"http://{HOST}:{self._port('balancer')}/v1/agents") == 401
        )

    def _make_databases(self) -> None:
        self.servers.make_databases(self.url("postgres"))

    # --- The members -------------------------------------------------------------------------------

    def _program(self, name: str, command: list[str], environment: dict[str, str], **options: Any) -> Program:
        return Program(name, command, environment, self.folder, self.log / f"{name}.log", **options)

    def _etcd(self, node: NodeAddress) -> Program:
        data = self.folder / f"etcd-{node.name}"
        command = [str(self.programs.etcd), *configurations.etcd_arguments(node, self.nodes, data)]
        return self._program(
            f"etcd-{node.name}", [*self.network.inside(node.name), *command], clean(os.environ)
        )

    def _patroni(self, node: NodeAddress) -> Program:
        folder = self.folder / f"postgres-{node.name}"
        folder.mkdir(mode=0o700, exist_ok=True)
        conf, data = folder / "patroni.json", folder / "data"
        roles = ("superuser", "replication", "rewind")
        passwords = {role: self._secret(role) for role in roles}
        text = configurations.patroni(
            node, self.nodes, data=data, programs=self.programs.postgres, passwords=passwords
        )
        write_private(conf, text)
        command = [*self.network.inside(node.name), *unprivileged(), str(self.programs.patroni), str(conf)]
        return self._program(f"patroni-{node.name}", command, clean(os.environ), works_in=data)

    def _without_pins(self) -> dict[str, str]:
        """Return the HSM's variables for all but the key hosts."""
        hosts = {"PKCS11_HOSTS": str(KEY_HOSTS), "PKCS11_HOST_FOLDER": str(self.folder / "sockets")}
        found = self.tokens.environment() | hosts
        return {name: value for name, value in found.items() if not name.endswith("_PIN")}

    def _balancer(self) -> Program:
        conf = self.folder / "haproxy.cfg"
        text = configurations.haproxy(
            self.nodes, self.webs, host=HOST, postgres=self._port("primary"), web=self._port("balancer"),
            shipped=(self.servers.layout.root / "deploy/haproxy/haproxy.cfg").read_text(),
        )  # fmt: skip
        write_private(conf, text)
        return self._program(
            "balancer", [str(self.programs.haproxy), "-db", "-f", str(conf)], clean(os.environ)
        )

    def _key_host(self, number: int) -> Program:
        socket = self.folder / f"sockets/host-{number}.sock"
        manage = str(self.servers.layout.root / "manage.py")
        return self._program(
            f"key-host-{number + 1}",
            [sys.executable, manage, "key_host", "--number", str(number)],
            self.environment() | self.tokens.environment(),
            before=lambda: socket.unlink(missing_ok=True),
        )

    def _parts(self) -> list[Program]:
        environment = self.environment()
        (self.folder / "run").mkdir(mode=0o700, exist_ok=True)
        found = [
            self._program(web.name, part_commands(f"{HOST}:{web.port}", environment)["web"], environment)
            for web in self.webs
        ]
        parts = part_commands("", environment)
        return found + [self._program(name, parts[part], environment) for name, part in BACKGROUND.items()]

    def _port(self, name: str) -> int:
        """Return a port that stays the same for the cluster's life."""
        kept = read_json(self.folder / "ports.json").get(name)
        return int(kept) if kept else private_port(self.folder / "ports.json", name)

    def _secret(self, name: str) -> str:
        path = self.folder / "secrets.json"
        kept = read_json(path)
        if name not in kept:
            kept[name] = secrets.token_hex(16)
            write_json(path, kept)
        return str(kept[name])


def rest_status(node: NodeAddress, path: str) -> int | None:
    """Return the status that Patroni's REST API answers; None if it does not."""
    return status_of(f"http://{node.host}:{node.rest}{path}", seconds=1.0)


def status_of(url: str, *, seconds: float = 5.0) -> int | None:
    """Return the status of a GET; None without an answer."""
    try:
        with urllib.request.urlopen(url, timeout=seconds) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (OSError, ValueError):
        return None


def etcd_status(node: NodeAddress) -> dict[str, Any] | None:
    """Return what an etcd member says of itself; None without an answer."""
    request = urllib.request.Request(
        f"http://{node.host}:{node.etcd}/v3/maintenance/status", data=b"{}", method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=1.0) as response:
            found: dict[str, Any] = json.load(response)
            return found
    except (OSError, ValueError):
        return None
