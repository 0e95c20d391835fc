"""The data servers of one checkout: PostgreSQL, Valkey and SoftHSM, unless the environment gives others."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path

from psycopg.sql import SQL, Identifier

from ..console import step
from ..environment import Given, given_servers, has_own_tokens, merged, service_name
from ..layout import Layout
from ..ports import HOST, WEB_DEFAULT
from ..state import load_secrets, locked, read_json
from .databases import ensure_assumable_role, ensure_database, ensure_role, query
from .postgres import DatabaseRole, PostgresServer, reachable_folder
from .redis import RedisServer
from .softhsm import SoftHsm, find_module

SHARDS = 16  # shards of each environment's token: enough for some ten thousand agents

# An owner in production does without these; the suite and the benchmarks make databases and checkpoints.
DEVELOPMENT_ROLES = "pg_checkpoint, pg_monitor, pg_signal_backend"


class Servers:
    """The servers that the Django processes of a checkout depend on.

    `database_names` are the live and the test one; `auditor` is the role that the service reads the audit
    log with.
    """

    def __init__(self, layout: Layout) -> None:
        layout.prepare()
        self.layout = layout
        self.secrets = load_secrets(layout.secrets)
        name, log = service_name(os.environ), layout.log / "postgres.log"
        self.database_names, self.auditor = (f"{name}_live", f"{name}_test"), f"{name}_auditor"
        folder = reachable_folder(layout.local / "postgres")
        self.postgres = PostgresServer(folder, layout.ports, log, self.secrets["postgres_password"])
        self.redis = RedisServer(layout.local / "redis", layout.ports, self.secrets["redis_password"])

    @cached_property
    def softhsm(self) -> SoftHsm:
        return self.tokens_in(self.layout.local / "softhsm")

    def tokens_in(self, folder: Path, *, shards: int = SHARDS) -> SoftHsm:
        labels = f"{service_name(os.environ)}-live", f"{service_name(os.environ)}-test"
        pins = self.secrets["pkcs11_user_pin"], self.secrets["pkcs11_so_pin"]
        return SoftHsm(folder, find_module(self.layout.local / "softhsm-package"), labels, *pins, shards)

    @property
    def given(self) -> Given:
        return given_servers(os.environ, self.secrets)

    def role(self, kind: str) -> DatabaseRole:
        """Return the role of `kind`: `owner` of the databases, `service`, or `reader` of all but secrets."""
        suffix = "app" if kind == "service" else kind
        return DatabaseRole(f"{service_name(os.environ)}_{suffix}", self.secrets[f"postgres_{kind}_password"])

    def start(self) -> None:
        """Start what is down. The caller holds the set-up lock."""
        self.start_postgres()
        if self.given.redis is None and self.redis.running() is None:
            with step("Valkey"):
                self.redis.start()
        if not has_own_tokens(os.environ):
            self.softhsm.ensure()

    def start_postgres(self) -> None:
        """Start PostgreSQL with its roles and databases, unless DATABASE_URL gives another."""
        if self.given.databases is not None:
            return
        with nullcontext() if self.postgres.running() is not None else step("PostgreSQL"):
            self.postgres.start()
            self.make_databases(self.postgres.url("postgres"))

    def make_databases(self, admin: str) -> None:
        """Make the roles and databases of the service on a server, unless they exist."""
        ensure_role(admin, self.role("owner"), attributes="CREATEDB", member_of=DEVELOPMENT_ROLES)
        ensure_role(admin, self.role("service"))
        ensure_role(admin, self.role("reader"))
        ensure_assumable_role(admin, self.auditor, by=self.role("service"))
        for name in self.database_names:
            ensure_database(admin, name, owner=self.role("owner"))

    def lack_tables(self) -> bool:
        """Whether the databases are embedded and were never migrated."""
        migrated = "SELECT 1 WHERE to_regclass('django_migrations') IS NOT NULL"
        urls = map(self.postgres.url, self.database_names)
        return self.given.databases is None and not any(query(url, migrated) for url in urls)

    def copy_tables(self) -> None:
        """Make the embedded test database a copy of the live one: to migrate it, too, takes longer."""
        admin, (live, test) = self.postgres.url("postgres"), self.database_names
        query(admin, SQL("DROP DATABASE {}").format(Identifier(test)))
        ensure_database(admin, test, owner=self.role("owner"), template=live)

    def stop_if_unused(self) -> bool:
        """Stop the embedded servers, unless the users' lock is held; return whether they were stopped."""
        try:
            with locked(self.layout.setup_lock), locked(self.layout.users_lock, wait=False):
                self.redis.stop()
                self.postgres.stop()
        except BlockingIOError:
            return False
        return True

    def base_url(self) -> str:
        """Return the address of the running or the next web server."""
        running = self.layout.supervisor.running() is not None
        port = read_json(self.layout.parts).get("port") if running else os.environ.get("PORT")
        return f"http://{HOST}:{port or read_json(self.layout.ports).get('web') or WEB_DEFAULT}"

    def database_urls(self, kind: str = "service") -> tuple[str, str]:
        """Return the live and the test database, for the role of `kind`; those given have one role."""
        live, test = (self.postgres.url(name, self.role(kind)) for name in self.database_names)
        return self.given.databases or (live, test)

    def environment(self, *, base_url: str | None = None, operator: bool = False) -> dict[str, str]:
        """Return the environment of a process of the service over the servers as they are.

        An `operator`'s process, which may migrate, knows the databases as their owner, and as the reader.
        """
        redis = self.given.redis or self.redis.url()
        own = {
            "ALLOWED_HOSTS": "127.0.0.1,localhost",
            "BASE_URL": base_url or self.base_url(),
            "EVENT_ARCHIVE_DIR": str(self.layout.archive),
            "AUDIT_VERIFIED_FILE": str(self.layout.local / "verified.json"),
            "ENCRYPTION_KEYS": self.secrets["encryption_key"],
            "SECRET_KEY": self.secrets["secret_key"],
            # A developer's receiver listens on plain HTTP on loopback; production allows neither.
            "WEBHOOK_ALLOW_HTTP": "true",
            "SECOND_FACTOR": "nobody",
            "TRUSTED_ISSUER_ALLOW_HTTP": "true",
            "TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES": "true",
            "WEBHOOK_ALLOW_PRIVATE_ADDRESSES": "true",
            "WEB_THREADS": "8",
            "WEB_WORKERS": "2",
            "LOG_FORMAT": "console",
            **self.softhsm.environment(),
            "DATABASE_AUDITOR": self.auditor,
            "DATABASE_READER": self.role("reader").name,
            "REDIS_URL": redis,
            "BROKER_URL": redis,
            "DJANGO_SETTINGS_MODULE": "compliance.settings",
            "PYTHONPATH": str(self.layout.root),
        }
        kinds = {"service": "DATABASE_URL"}
        if operator and self.given.databases is None:
            kinds |= {"owner": "DATABASE_OWNER_URL", "reader": "DATABASE_READER_URL"}
        for kind, name in kinds.items():
            own |= dict(zip((name, f"TEST_{name}"), self.database_urls(kind), strict=True))
        return merged(own, os.environ)


@contextmanager
def in_use(servers: Servers, *, start: Callable[[], None] | None = None) -> Iterator[None]:
    """Keep the data servers up inside the block, started by `start`; then the last user stops them."""
    layout = servers.layout
    try:
        with locked(layout.users_lock, shared=True):
            with locked(layout.setup_lock):
                (start or servers.start)()
            yield
    finally:
        servers.stop_if_unused()
