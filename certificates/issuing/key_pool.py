"""Keys made in advance, so that certifying does not wait seconds for an RSA key generation."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Final

from django.conf import settings
from redis.exceptions import RedisError

from certificates.issuing import wrapped_keys
from certificates.models import Issuance, PooledKey
from compliance.core import environments
from compliance.core.tasks import enqueue, enqueue_on_commit
from compliance.keys import KeyRef, KeyStorage, backend_for
from compliance.stores import redis, sql

log = logging.getLogger(__name__)

FILL = "certificates.fill_key_pool"
LABEL = "agent"
TURN_SECONDS: Final = 20.0
REST_SECONDS: Final = 2.0
LEASE_SECONDS: Final = 50
"""`TURN_SECONDS` and one slow key generation; after a kill no process fills the pool for as long."""

# `left` counts the waiting keys, with the one taken, up to the low-water mark.
_TAKE: Final = """
WITH taken AS (
    DELETE FROM certificates_pooledkey WHERE id = (
        SELECT id FROM certificates_pooledkey WHERE storage = %(storage)s
        ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING key_uri, spki
), intended AS (
    INSERT INTO certificates_issuance
        (id, tenant_id, agent_id, serial_number, key_uri, state, error, created_at)
    SELECT %(id)s, %(tenant_id)s, %(agent_id)s, %(serial_number)s, key_uri, %(state)s, '', %(created_at)s
    FROM taken
)
SELECT key_uri, spki,
    (SELECT count(*) FROM (
        SELECT FROM certificates_pooledkey WHERE storage = %(storage)s LIMIT %(mark)s::integer
    ) AS few) AS left
FROM taken
"""


def take_for(intent: Issuance) -> KeyRef | None:
    """Take a key and insert the intent that names it, in one statement; None if the pool is empty."""
    mark, wanted_storage = low_water(), storage()
    taken = sql.prepared(_TAKE, {**vars(intent), "mark": mark + 1, "storage": wanted_storage.value})
    if mark and (not taken or taken[0][2] <= mark):
        enqueue_on_commit(FILL)
    if not taken:
        log.info("the key pool is empty")
        return None
    intent.key_uri = taken[0][0]
    return KeyRef(taken[0][0], taken[0][1], wanted_storage)


def put_back(*, key: KeyRef, now: datetime) -> None:
    """Put a key that no certificate uses into the pool."""
    about = {"spki": key.spki, "storage": key.storage.value, "created_at": now}
    PooledKey.objects.get_or_create(key_uri=key.uri, defaults=about)


def storage() -> KeyStorage:
    """Where the keys of new agents lie."""
    is_wrapped = settings.AGENT_KEYS == KeyStorage.WRAPPED
    return KeyStorage.WRAPPED if is_wrapped else KeyStorage.RESIDENT


def waiting() -> int:
    """Number of keys in the pool that new agents may get."""
    return PooledKey.objects.filter(storage=storage().value).count()


def wanted() -> int:
    """Target size of the current environment's pool."""
    own: int | None = settings.KEY_POOL_SIZES.get(environments.current().value)
    return settings.KEY_POOL_SIZE if own is None else own


def low_water() -> int:
    """The size below which the pool is filled even while agents are being certified."""
    return -(-wanted() // 2)


def fill(
    *,
    now: datetime,
    size: int | None = None,
    seconds: float | None = None,
    gives_way: bool = False,
    tell: Callable[[int], None] = lambda made: None,
) -> int:
    """Generate keys up to `size` (by default the target), for at most `seconds`; return how many.

    `tell` is called with the count after each key. `gives_way` stops when keys are taken and enough are left.
    """
    goal = wanted() if size is None else size
    deadline = None if seconds is None else time.monotonic() + seconds
    made, before = 0, waiting()
    while before < goal and (deadline is None or time.monotonic() < deadline):
        put_back(key=generate(now=now), now=now)
        made += 1
        tell(made)
        present = waiting()
        if gives_way and low_water() <= present <= before:
            break
        before = present
    return made


def refill(*, now: datetime) -> int:
    """Fill the pool from a worker: one process of an environment at a time, for `TURN_SECONDS`, then again.

    A key generation costs as much CPU as several certifications, so it gives way to them.
    """
    with _filling() as is_alone:
        if not is_alone:
            return 0
        made = fill(now=now, seconds=TURN_SECONDS, gives_way=True)
    present = waiting()
    if present < wanted():
        enqueue(FILL, delay_seconds=0 if present < low_water() else REST_SECONDS)
    return made


@contextmanager
def _filling() -> Iterator[bool]:
    """Whether no other process fills this environment's pool; without Redis the answer is yes."""
    lock = redis.client().lock(redis.key("key-pool", "filling"), timeout=LEASE_SECONDS, blocking=False)
    try:
        is_alone = lock.acquire()
    except RedisError:
        yield True
        return
    try:
        yield is_alone
    finally:
        if is_alone:
            with suppress(RedisError):
                lock.release()


def generate(*, now: datetime) -> KeyRef:
    """Generate an RSA-2048 key in the current environment's token; a wrapped one is stored."""
    backend = backend_for(environments.current())
    if storage() is KeyStorage.RESIDENT:
        return backend.generate_rsa(label=LABEL, spread=True)
    wrapped = backend.generate_wrapped(wrapped_keys.current(), label=LABEL)
    wrapped_keys.store(wrapped=wrapped, now=now)
    return wrapped.key
