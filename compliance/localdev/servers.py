"""The data servers of one checkout: PostgreSQL, Valkey and SoftHSM, unless the environment gives others."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import processes
from .console import step
from .databases import ensure_database, ensure_role, hand_over_databases
from .environment import External, application, external, has_own_tokens, hosts_wanted, merged, service_name
from .key_hosts import KeyHosts
from .layout import Layout
from .ports import HOST, WEB_DEFAULT
from .postgres import PostgresServer, Role, server_for
from .redis import RedisServer
from .softhsm import Module, SoftHsm, find_module
from .state import LockBusy, load_secrets, locked, read_json

SHARDS = 16
"""Of each environment's token; enough for some ten thousand agents, and made in a second or two."""

DEVELOPMENT = "pg_checkpoint, pg_monitor, pg_signal_backend"
"""Predefined roles of the databases' owner, which an owner in production does without."""


@dataclass(frozen=True)
class Servers:
    """What the Django processes of a checkout depend on."""

    layout: Layout

    @cached_property
    def secrets(self) -> dict[str, str]:
        return load_secrets(self.layout.secrets)

    @cached_property
    def postgres(self) -> PostgresServer:
        return server_for(
            local=self.layout.local,
            digest=self.layout.digest,
            ports=self.layout.ports,
            log=self.layout.log / "postgres.log",
            password=self.secrets["postgres_password"],
        )

    @cached_property
    def redis(self) -> RedisServer:
        return RedisServer(self.layout.local / "redis", self.layout.ports, self.secrets["redis_password"])

    @cached_property
    def module(self) -> Module:
        return find_module(self.layout.local / "softhsm-package")

    @cached_property
    def softhsm(self) -> SoftHsm:
        return self.tokens_in(
            self.layout.local / "softhsm", hosts=hosts_wanted(os.environ), sockets=self.layout.run / "keys"
        )

    @cached_property
    def key_hosts(self) -> KeyHosts:
        """The processes that open the stack's tokens; none of them where PKCS11_HOSTS is 0."""
        return KeyHosts(
            root=self.layout.root,
            folder=self.layout.run / "keys",
            count=self.softhsm.hosts,
            record=self.layout.run / "key_hosts.json",
            log=self.layout.log / "key_hosts.log",
        )

    def tokens_in(
        self, folder: Path, *, shards: int = SHARDS, hosts: int = 0, sockets: Path | None = None
    ) -> SoftHsm:
        """Tokens in another folder than the stack's, with the same PINs."""
        name = service_name(os.environ)
        return SoftHsm(
            folder=folder,
            module=self.module,
            labels=(f"{name}-live", f"{name}-test"),
            user_pin=self.secrets["pkcs11_user_pin"],
            so_pin=self.secrets["pkcs11_so_pin"],
            shards=shards,
            hosts=hosts,
            sockets=sockets,
        )

    def database_names(self) -> tuple[str, str]:
        name = service_name(os.environ)
        return f"{name}_live", f"{name}_test"

    @property
    def given(self) -> External:
        """The servers that the caller's environment gives instead of ours."""
        return external(os.environ, self.secrets)

    @property
    def owner(self) -> Role:
        """Owns the databases and what is in them; migrates."""
        return Role(f"{service_name(os.environ)}_owner", self.secrets["postgres_owner_password"])

    @property
    def service(self) -> Role:
        """What web, worker, sender, beat and commands connect as."""
        return Role(f"{service_name(os.environ)}_app", self.secrets["postgres_service_password"])

    @property
    def reader(self) -> Role:
        """Reads what is no secret."""
        return Role(f"{service_name(os.environ)}_reader", self.secrets["postgres_reader_password"])

    def start_postgres(self) -> None:
        """Start PostgreSQL, unless DATABASE_URL gives another, with the roles and the two databases."""
        if self.given.database is not None:
            return
        if self.postgres.running() is not None:
            self._make_databases()
            return
        with step("PostgreSQL"):
            self.postgres.start()
            self._make_databases()

    def _make_databases(self) -> None:
        """Make the roles and databases that are missing, and hand over those of an earlier version."""
        # The suite and the benchmarks make and drop databases, and the latter write checkpoints.
        ensure_role(self.postgres, self.owner, attributes="CREATEDB", member_of=DEVELOPMENT)
        ensure_role(self.postgres, self.service)
        ensure_role(self.postgres, self.reader)
        hand_over_databases(self.postgres, f"{service_name(os.environ)}_", self.owner)
        for name in self.database_names():
            ensure_database(self.postgres, name, owner=self.owner)

    def start_redis(self) -> None:
        """Start Valkey, unless REDIS_URL gives another."""
        if self.given.redis is None and self.redis.running() is None:
            with step("Valkey"):
                self.redis.start()

    def start_tokens(self, tokens: SoftHsm) -> None:
        """Make the tokens, unless the caller names his own."""
        if not has_own_tokens(os.environ) and not tokens.made():
            with step("SoftHSM tokens"):
                tokens.ensure()

    def start(self) -> None:
        """Bring up what isn't up. The caller holds the set-up lock."""
        self.start_postgres()
        self.start_redis()
        self.start_tokens(self.softhsm)
        self.start_key_hosts()

    def start_key_hosts(self, *, wait: bool = True) -> None:
        """Start the key hosts where there shall be any; `wait` until they serve."""
        hosts = self.key_hosts
        if not hosts.count or hosts.running() is not None:
            return
        environment = self.environment() | self.softhsm.host_environment()
        if not wait:
            hosts.start(environment, wait=False)
            return
        with step("key hosts"):
            hosts.start(environment)

    def stop(self) -> None:
        """Stop the embedded servers, if they run."""
        self.key_hosts.stop()
        self.redis.stop()
        self.postgres.stop()

    def stop_if_unused(self) -> bool:
        """Stop the embedded servers when nobody holds the users' lock; whether they were free to stop."""
        try:
            with locked(self.layout.setup_lock), locked(self.layout.users_lock, wait=False):
                self.stop()
        except LockBusy:
            return False
        return True

    def base_url(self) -> str:
        """The address of the running or the next web server."""
        running = processes.load(self.layout.supervisor) is not None
        port = read_json(self.layout.parts).get("port") if running else os.environ.get("PORT")
        port = port or read_json(self.layout.ports).get("web") or WEB_DEFAULT
        return f"http://{HOST}:{port}"

    def database_urls(self) -> tuple[str, str]:
        """The live and the test database."""
        live, test = self.database_names()
        given = self.given.database
        return given or (self.postgres.url(live, self.service), self.postgres.url(test, self.service))

    def owner_urls(self) -> tuple[str, str]:
        """The same for their owner; those of the service where somebody gives databases and no owner."""
        live, test = self.database_names()
        if self.given.database is not None:
            return self.given.owners or self.given.database
        return self.postgres.url(live, self.owner), self.postgres.url(test, self.owner)

    def operator_contract(self) -> dict[str, str]:
        """What an operator's commands have besides: the ways to the databases as their owner and to read."""
        if self.given.database is not None:
            live_and_test = self.given.owners
            return {} if live_and_test is None else _pair("DATABASE_OWNER_URL", live_and_test)
        live, test = (self.postgres.url(name, self.reader) for name in self.database_names())
        return _pair("DATABASE_OWNER_URL", self.owner_urls()) | _pair("DATABASE_READER_URL", (live, test))

    def contract(self, *, base_url: str | None = None) -> dict[str, str]:
        """The environment contract over the servers as they are."""
        live, test = self.database_urls()
        return {
            **application(self.secrets, base_url=base_url or self.base_url()),
            **self.softhsm.environment(),
            "DATABASE_URL": live,
            "TEST_DATABASE_URL": test,
            "DATABASE_READER": self.reader.name,
            "REDIS_URL": self.given.redis or self.redis.url(),
        }

    def environment(self, *, base_url: str | None = None, operator: bool = False) -> dict[str, str]:
        """The whole environment for a Django process of this checkout; `operator`: for one that migrates."""
        return merged(
            self.contract(base_url=base_url) | (self.operator_contract() if operator else {}),
            os.environ,
            root=self.layout.root,
            cache=self.layout.local / "pycache",
        )


def _pair(name: str, urls: tuple[str, str]) -> dict[str, str]:
    return {name: urls[0], f"TEST_{name}": urls[1]}


@contextmanager
def in_use(servers: Servers, *, start: Callable[[], None] | None = None) -> Iterator[None]:
    """Have the data servers (or what `start` starts) up inside; afterwards the last user stops them."""
    layout = servers.layout
    layout.prepare()
    try:
        with locked(layout.users_lock, shared=True):
            with locked(layout.setup_lock):
                (start or servers.start)()
            yield
    finally:
        servers.stop_if_unused()
