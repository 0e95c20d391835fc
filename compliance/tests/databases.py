"""Both databases of a run of tests: copies of two that were migrated once for this state of the code.

These templates stay on the server for the next run; one of another state of the code removes them.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connections
from django.test.utils import setup_databases, teardown_databases

from compliance.core import environments
from compliance.core.environments import Environment

LOCK: Final = 0x74656D70  # "temp": one run at a time makes or copies a template
ALIASES: Final = {environment.alias: False for environment in Environment}


def make_copies() -> None:
    """Make the databases of every environment, as their owner."""
    prefix = f"{settings.SERVICE_NAME}_template_"
    digest = digest_of_code(Path(settings.BASE_DIR))
    with _alone() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [prefix])
        found = {name for (name,) in cursor.fetchall()}
        templates = {alias: f"{prefix}{digest}_{alias}" for alias in ALIASES}
        if not found >= set(templates.values()):
            for name in found:
                cursor.execute(f'DROP DATABASE "{name}"')
            for alias, name in _migrated().items():
                cursor.execute(f'ALTER DATABASE "{name}" RENAME TO "{templates[alias]}"')
        for alias, template in templates.items():
            creation: Any = connections[alias].creation
            cursor.execute(f'CREATE DATABASE "{creation._get_test_db_name()}" TEMPLATE "{template}"')
    setup_databases(verbosity=0, interactive=False, keepdb=True, aliases=ALIASES)


def digest_of_code(root: Path) -> str:
    """Return a digest of what migrations may depend on: all code but tests, and the versions of packages."""
    files = [path.relative_to(root) for path in root.glob("[a-z]*/**/*.py")]
    found = hashlib.sha256()
    for path in (Path("requirements.txt"), *sorted(path for path in files if "tests" not in path.parts)):
        content = (root / path).read_bytes()
        found.update(f"{path} {len(content)}\n".encode() + content)
    return found.hexdigest()[:16]


def _migrated() -> dict[str, str]:
    """Make and migrate a database for each alias; return their names."""
    made = setup_databases(verbosity=0, interactive=False, aliases=ALIASES)
    names = {alias: str(connections[alias].settings_dict["NAME"]) for alias in ALIASES}
    teardown_databases(made, verbosity=0, keepdb=True)
    return names


@contextmanager
def _alone() -> Iterator[Any]:
    """A cursor of the server's maintenance database, while no other run is here."""
    with connections[Environment.LIVE.alias]._nodb_cursor() as cursor:
        # Another run may migrate meanwhile, which takes longer than the service waits for a lock.
        cursor.execute("SET lock_timeout = 0")
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        yield cursor


@contextmanager
def rolled_back_worlds(blocker: Any) -> Iterator[None]:
    """A transaction of each database that is never committed, within the live environment."""
    test, live = _rolled_back(Environment.TEST), _rolled_back(Environment.LIVE)
    with blocker.unblock(), environments.use(Environment.LIVE), test, live:
        yield


@contextmanager
def _rolled_back(environment: Environment) -> Iterator[None]:
    with environments.use(environment), environments.atomic():
        yield
        connections[environment.alias].set_rollback(True)
