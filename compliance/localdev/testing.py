"""`./test`: run pytest over databases, tokens and a Valkey of its own, and remove them.

pytest-xdist shares the whole suite, or the matrix, between workers, one more than there are processors, up to
`MOST_WORKERS`: tests also wait for processes, sockets and disks. Each worker has a run of its own: its
unique name is part of its databases' names.
"""

import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from .console import StepFailed, say
from .environment import has_own_tokens
from .layout import Layout
from .servers.databases import drop_databases
from .servers.processes import run_foreground
from .servers.redis import RedisServer
from .servers.servers import Servers, in_use
from .stack import compile_scorer
from .state import locked

MOST_WORKERS = 3
OWN = {
    "AUDIT_VERIFIED_FILE": "",  # each test's log is another
    # Fewer than the service's default: a round of revocation lists signs one of each shard.
    "CRL_SHARDS": "4",
    # More than the service's time-out: on a busy machine Valkey may stand still, which is no finding.
    "REDIS_TIMEOUT_SECONDS": "20",
}


def run_tests(layout: Layout, arguments: list[str]) -> int:
    """Run pytest with `arguments`, or the whole suite; return its exit code."""
    servers = Servers(layout)
    alone = arguments not in ([], ["-m", "matrix"]) or has_own_tokens(os.environ)
    count = 1 if alone else min((os.cpu_count() or 1) + 1, MOST_WORKERS)
    command = [sys.executable, "-m", "pytest", *arguments]
    compile_scorer(layout, "--background")
    with in_use(servers, start=servers.start_postgres):
        # What killed runs left: the folder of a run that goes on is locked.
        for folder in sorted(layout.local.glob("test/r*")):
            with suppress(BlockingIOError), locked(folder / "lock", wait=False):
                try:
                    _clear(servers, folder)
                except StepFailed as failure:
                    say(f"  ! {folder.name}, left by a killed run, stays: {failure.message}")
        with ExitStack() as stack:
            runs = [stack.enter_context(_own_run(servers)) for _ in range(count)]
            environment = runs[0]
            if count > 1:
                # Tests that commit for real come last in every worker: the order stays as collected.
                command += [f"-n{count}", "--dist=loadgroup", "--no-loadscope-reorder"]
                own = json.dumps([dict(run.items() - environment.items()) for run in runs])
                environment |= {"PYTEST_PLUGINS": "compliance.localdev.worker", "TEST_WORKERS": own}
            return run_foreground(command, cwd=layout.root, env=environment)


@contextmanager
def _own_run(servers: Servers) -> Iterator[dict[str, str]]:
    """Make a run's Valkey and tokens; yield its pytest's environment, then remove all of the run."""
    folder = servers.layout.local / "test" / f"r{secrets.token_hex(5)}"
    archive, redis = folder / "archive", _redis_in(servers, folder)
    softhsm = servers.tokens_in(folder / "softhsm", shards=2)
    archive.mkdir(mode=0o700, parents=True)
    with locked(folder / "lock"):
        try:
            redis.start()
            if not has_own_tokens(os.environ):
                softhsm.ensure()
            environment = servers.environment(operator=True) | OWN
            for name in environment:
                if "DATABASE" in name and name.endswith("_URL"):
                    # Django prefixes the name with `test_`.
                    parts = urlsplit(environment[name])
                    environment[name] = parts._replace(path=f"{parts.path}_{folder.name}").geturl()
            environment |= {"REDIS_URL": redis.url(), "BROKER_URL": redis.url()}
            environment |= {"EVENT_ARCHIVE_DIR": str(archive)}
            yield environment if has_own_tokens(os.environ) else environment | softhsm.environment()
        finally:
            _clear(servers, folder)


def _redis_in(servers: Servers, folder: Path) -> RedisServer:
    password = servers.secrets["redis_password"]
    return RedisServer(folder / "redis", folder / "ports.json", password, snapshots=False)


def _clear(servers: Servers, folder: Path) -> None:
    _redis_in(servers, folder).stop()
    drop_databases(servers.database_urls("owner")[0], folder.name)
    shutil.rmtree(folder, ignore_errors=True)
