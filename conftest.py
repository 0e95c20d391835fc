"""What every test stands on: both databases, an environment, and a client that speaks the API.

A test runs in a transaction of each database that is rolled back. One that needs real commits (threads,
on_commit, other processes) asks for `committed` instead: nothing is cleaned up behind it, so it works
with a tenant of its own.
"""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connections
from django.urls import get_resolver
from hypothesis import HealthCheck, settings
from pytest_django.fixtures import Settings
from whitenoise.middleware import WhiteNoiseMiddleware

from compliance.api import health, rate_limits, unauthenticated
from compliance.console.addresses import URLCONF
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.serving.tuning import spare_garbage_collection
from compliance.stores import redis
from compliance.stores.database_owner import as_owner
from compliance.tests import databases
from compliance.tests.client import ApiClient
from compliance.tests.owner import owning
from compliance.tests.redis_servers import NOWHERE, redis_at
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

pytest_plugins = ["compliance.tests.stack"]
# A busy machine is slow, which is no finding.
settings.register_profile("service", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("service")
# So are threads that wait for each other's locks.
for _config in django_settings.DATABASES.values():
    _options = _config["OPTIONS"]
    _options["options"] = _options.get("options", "").replace("lock_timeout=1000", "lock_timeout=10000")
django_settings.DATABASE_SESSION["lock_timeout"] = "10000"


def pytest_collection() -> None:
    """Load the console's pages, as web processes do with its routes: tests are generated from them."""
    # What is loaded stays: collecting garbage among it is slow.
    gc.disable()
    assert get_resolver(URLCONF).url_patterns


def pytest_collection_finish() -> None:
    # All that was loaded is exempt before anything looks for garbage: to go through it takes a second.
    gc.freeze()
    spare_garbage_collection()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs in transactions, and put last what commits for real.

    Workers that share the suite take it by part, and begin with the parts that have most tests.
    """
    for item in items:
        if not commits(item):
            item.add_marker(pytest.mark.django_db(databases=["default", "test"]))
    sizes = Counter(map(part_of, items))
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: (-sizes[part_of(item)], part_of(item)))
        for item in items:
            is_committed, path = part_of(item)
            item.add_marker(pytest.mark.xdist_group(f"{path}-committed" if is_committed else path))
    items.sort(key=commits)


def part_of(item: pytest.Item) -> tuple[bool, str]:
    """Return whether the test commits for real, and what a worker takes at once.

    That is its file, or all tests over the server of the SDK's tests, which is started once.
    """
    path = item.nodeid.partition("::")[0]
    return commits(item), "sdk" if "running_service" in getattr(item, "fixturenames", ()) else path


def commits(item: pytest.Item) -> bool:
    return "committed" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session", autouse=True)
def static_files_listed_once() -> Iterator[None]:
    """Look for static files once: every test client makes a WhiteNoise of its own, which reads them all."""
    found: dict[str, Any] = {}
    look = WhiteNoiseMiddleware.add_files_from_finders

    def add_known_files(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            look(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add_known_files)
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: Any) -> Iterator[None]:
    """Both databases, always: the plugin's own fixture makes only those that markers name.

    Their owner makes and migrates them; the tests connect as the service does, and lack what it lacks.
    """
    with django_db_blocker.unblock(), as_owner("default"), as_owner("test"):
        databases.make_copies()
    yield
    # `./test` drops the databases.
    with django_db_blocker.unblock():
        connections.close_all()


@contextmanager
def shared_with_the_auditor() -> Iterator[None]:
    """Let the auditor read over the test's own connections: no other sees what is rolled back."""
    own = {each.auditor_alias: connections[each.auditor_alias] for each in Environment}
    for each in Environment:
        connections[each.auditor_alias] = connections[each.alias]
    try:
        yield
    finally:
        for alias, connection in own.items():
            connections[alias] = connection


@pytest.fixture(autouse=True)
def auditor(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests in a transaction share it with the auditor; the others read as the auditor's role."""
    with nullcontext() if "committed" in request.fixturenames else shared_with_the_auditor():
        yield


@pytest.fixture
def committed(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Real transactions, no clean-up."""
    with django_db_blocker.unblock():
        yield
        connections.close_all()


@pytest.fixture
def owned(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The live database as its owner in a transaction that is rolled back, for what the service may not do.

    Ask for it before fixtures that write, so that they write in the same transaction.
    """
    with django_db_blocker.unblock(), environments.use(Environment.LIVE), owning(), environments.atomic():
        with shared_with_the_auditor():
            yield
        connections["default"].set_rollback(True)


@pytest.fixture(scope="module")
def world_transaction(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """A transaction around the tests of a module: what they share is written in it once.

    Each test is rolled back to there. A fixture of a module asks for this one and writes; none of the
    module's tests may be `committed` or `owned`.
    """
    with databases.rolled_back_worlds(django_db_blocker):
        yield


@pytest.fixture(scope="module")
def owned_world_transaction(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """As `world_transaction`, but what the module's tests do in the live database, its owner does."""
    with (
        django_db_blocker.unblock(),
        environments.use(Environment.LIVE),
        owning(),
        databases.rolled_back_worlds(django_db_blocker),
    ):
        yield


@pytest.fixture(autouse=True)
def live() -> Iterator[None]:
    """Tests act in the live environment unless they choose otherwise."""
    with environments.use(Environment.LIVE):
        yield


@pytest.fixture(autouse=True)
def fresh_limits() -> None:
    """No test inherits another's rate limits."""
    client = redis.client()
    for name in client.scan_iter("*:limit:*", count=1_000):
        client.delete(name)
    rate_limits.in_memory.buckets.clear()
    unauthenticated.refused.clear()
    health.readiness.last = None


@pytest.fixture
def redis_is_down(settings: Settings) -> Iterator[None]:
    """No server answers at REDIS_URL; ask for it after the fixtures that need one."""
    with redis_at(NOWHERE, settings):
        yield


@pytest.fixture
def api() -> ApiClient:
    """A client without credentials; `api.as_key(secret)` gives one with."""
    return ApiClient()


@pytest.fixture
def acme() -> Tenant:
    """The tenant whose people a test of the console is about."""
    return make_tenant("Acme")


@pytest.fixture
def fast_passwords(settings: Settings) -> None:
    """Hash by MD5: PBKDF2 takes half a second, and every sign-in does it."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
