"""How long a key counts that was looked up, and what a look-up may wait for."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.stores import sql
from compliance.tests.threads import in_thread, somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from tenancy import keys, recent_keys, services
from tenancy.models import ApiKey
from tenancy.tests.factories import make_key, make_tenant

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def digest() -> str:
    return keys.digest(make_key(make_tenant()))


def test_key_whose_row_is_locked_is_looked_up_without_waiting(digest: str) -> None:
    with ThreadPoolExecutor(1) as pool, environments.atomic():
        ApiKey.objects.select_for_update().get(digest=digest)
        found = pool.submit(in_thread, partial(services.check, digest=digest, now=now())).result(20)

    assert (found.digest, ApiKey.objects.get(digest=digest).last_used_at) == (digest, None)


def test_key_that_was_slow_to_read_is_as_old_as_its_reading(
    digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_keys, "FRESH_SECONDS", 0.3)
    with ThreadPoolExecutor(1) as pool:
        with environments.atomic():
            sql.execute(f"LOCK TABLE {ApiKey._meta.db_table} IN ACCESS EXCLUSIVE MODE")
            found = pool.submit(in_thread, partial(services.check, digest=digest, now=now()))
            assert eventually(somebody_waits_for_a_lock, seconds=20)
            time.sleep(recent_keys.FRESH_SECONDS)
        assert found.result().digest == digest

    assert recent_keys.find(Environment.LIVE, digest) is None
    assert recent_keys.is_known(Environment.LIVE, digest)
