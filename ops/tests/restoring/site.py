"""One installation in a folder: PostgreSQL, Valkey, tokens and settings, on ports of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg

from bench.harness.place import NO_LIMIT
from compliance.localdev.console import StepFailed
from compliance.localdev.environment import service_name
from compliance.localdev.ports import HOST
from compliance.localdev.servers import processes
from compliance.localdev.servers.databases import ensure_assumable_role, ensure_database, ensure_role
from compliance.localdev.servers.postgres import DatabaseRole, PostgresServer, reachable_folder
from compliance.localdev.servers.redis import RedisServer
from compliance.localdev.servers.servers import DEVELOPMENT_ROLES, Servers
from compliance.localdev.servers.softhsm import SoftHsm
from compliance.localdev.state import load_secrets, read_json
from ops.tests.cluster.programs import clean

SHARDS = 2
RECOVERY_SECONDS = 1_800.0
"""For the replay of the log before the server takes connections."""


@dataclass(frozen=True)
class Site:
    """An installation under `folder`; `servers` are the checkout's, for its module and its code."""

    servers: Servers
    folder: Path

    # --- What it consists of -------------------------------------------------------------------------

    @property
    def settings(self) -> Path:
        """The file of secrets: passwords, PINs, SECRET_KEY and ENCRYPTION_KEYS."""
        return self.folder / "secrets.json"

    @cached_property
    def secrets(self) -> dict[str, str]:
        return load_secrets(self.settings)

    @cached_property
    def postgres(self) -> PostgresServer:
        return PostgresServer(
            reachable_folder(self.folder / "postgres"),
            ports=self.folder / "ports.json",
            log=self.folder / "postgres.log",
            password=self.secrets["postgres_password"],
        )

    @cached_property
    def redis(self) -> RedisServer:
        return RedisServer(
            self.folder / "redis", self.folder / "ports.json", self.secrets["redis_password"], snapshots=False
        )

    @cached_property
    def tokens(self) -> SoftHsm:
        return SoftHsm(
            folder=self.folder / "softhsm",
            module=self.servers.softhsm.module,
            labels=self.servers.softhsm.labels,
            user_pin=self.secrets["pkcs11_user_pin"],
            so_pin=self.secrets["pkcs11_so_pin"],
            shards=SHARDS,
        )

    @property
    def demo(self) -> dict[str, Any]:
        """The tenant and its API keys."""
        return read_json(self.folder / "demo.json")

    def role(self, kind: str) -> DatabaseRole:
        return DatabaseRole(self.servers.role(kind).name, self.secrets[f"postgres_{kind}_password"])

    def environment(self, *, operator: bool = False) -> dict[str, str]:
        """Return the environment of a process of the service."""
        names = self.servers.database_names
        found = {
            **{name: value for name, value in clean(os.environ).items() if "DATABASE" not in name},
            **self.tokens.environment(),
            **NO_LIMIT,
            "ALLOWED_HOSTS": HOST,
            "BASE_URL": "http://restore.example",
            "BROKER_URL": self.redis.url(),
            "REDIS_URL": self.redis.url(),
            "DATABASE_AUDITOR": self.servers.auditor,
            "DATABASE_READER": self.role("reader").name,
            "DJANGO_SETTINGS_MODULE": "compliance.settings",
            "ENCRYPTION_KEYS": self.secrets["encryption_key"],
            "EVENT_ARCHIVE_DIR": str(self.folder / "archive"),
            "KEY_POOL_SIZE": "0",
            "LOG_LEVEL": "ERROR",
            "PYTHONPATH": str(self.servers.layout.root),
            "SECOND_FACTOR": "nobody",
            "SECRET_KEY": self.secrets["secret_key"],
            "SERVICE_NAME": service_name(os.environ),
            "WEBHOOK_ALLOW_HTTP": "true",
            "WEBHOOK_ALLOW_PRIVATE_ADDRESSES": "true",
        }
        kinds = {"DATABASE_URL": "service", **({"DATABASE_OWNER_URL": "owner"} if operator else {})}
        for variable, kind in kinds.items():
            live, test = (self.postgres.url(name, self.role(kind)) for name in names)
            found |= {variable: live, f"TEST_{variable}": test}
        return found

    # --- Starting and stopping -----------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the folders."""
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        (self.folder / "archive").mkdir(mode=0o711, exist_ok=True)
        self.postgres.folder.mkdir(mode=0o711, exist_ok=True)

    def start(self) -> None:
        """Start PostgreSQL, which first replays what a backup brought, and an empty Valkey."""
        self.postgres.start(seconds=RECOVERY_SECONDS)
        self.redis.start()

    def make(self) -> None:
        """Make a new installation: databases, tokens, CAs, a tenant. It runs."""
        self.prepare()
        self.start()
        owner, admin = self.role("owner"), self.postgres.url("postgres")
        ensure_role(admin, owner, attributes="CREATEDB", member_of=DEVELOPMENT_ROLES)
        for kind in ("service", "reader"):
            ensure_role(admin, self.role(kind))
        ensure_assumable_role(admin, self.servers.auditor, by=self.role("service"))
        for name in self.servers.database_names:
            ensure_database(admin, name, owner=owner)
        self.tokens.ensure()
        self.manage("bootstrap_dev", "--migrate", "--state", str(self.folder / "demo.json"))

    def kill(self) -> None:
        """End the servers as a machine that fails."""
        for server in (self.postgres, self.redis):
            server.stop(((signal.SIGKILL, 20.0),))
        data = self.postgres.data
        processes.wait_until(lambda: not any(processes.in_folder(data)), seconds=20)

    def destroy(self) -> None:
        """Kill the servers and remove everything."""
        if self.folder.exists():
            self.kill()
            shutil.rmtree(self.postgres.folder, ignore_errors=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    # --- What it is asked ----------------------------------------------------------------------------

    def admin(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """Connect as the superuser."""
        return psycopg.connect(self.postgres.url(database), autocommit=True)

    def live(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Connect to the live database as its superuser."""
        return self.admin(self.servers.database_names[0])

    def manage(self, *arguments: str, accepted: Sequence[int] = (0,)) -> str:
        """Run a command of the service as its operator; return what it printed. Raises: StepFailed."""
        return self._run([str(self.servers.layout.root / "manage.py"), *arguments], accepted)

    def check(self, *arguments: str) -> dict[tuple[str, str], dict[str, Any]]:
        """Run `restore_check`; return its findings by environment and check."""
        found = json.loads(self.manage("restore_check", "--json", *arguments, accepted=(0, 5, 6)))
        return {(each["environment"], each["check"]): each for each in found}

    def child(self, *arguments: str) -> dict[str, Any]:
        """Run `ops.tests.restoring.child`; return its answer."""
        found: dict[str, Any] = json.loads(self._run(["-m", "ops.tests.restoring.child", *arguments], (0,)))
        return found

    def _run(self, arguments: Sequence[str], accepted: Sequence[int]) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            env=self.environment(operator=True),
            cwd=self.servers.layout.root,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in accepted:
            reason = processes.tail(done)
            raise StepFailed(f"{' '.join(arguments[:2])} failed: {reason}", hint=f"look at {self.folder}")
        return done.stdout
