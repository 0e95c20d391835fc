"""Keys made in advance: certifying does not wait for an RSA key generation, which may take seconds."""

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from redis.exceptions import RedisError

from certificates.models import Issuance, PooledKey
from compliance import environments, redis, sql
from compliance.keys import KeyRef, backend_for
from compliance.tasks import enqueue, enqueue_on_commit

log = logging.getLogger(__name__)

FILL = "certificates.fill_key_pool"
LABEL = "agent"
TURN_SECONDS: Final = 20.0
REST_SECONDS: Final = 2.0
LEASE_SECONDS: Final = 50
"""A turn with one slow key generation at its end; a killed worker's lease holds the others up as long."""

# `left` counts what waits, this one included, as far as the low-water mark needs it.
_TAKE: Final = """
WITH taken AS (
    DELETE FROM certificates_pooledkey WHERE id = (
        SELECT id FROM certificates_pooledkey ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
    )
    RETURNING key_uri, spki
)
{also}
SELECT key_uri, spki,
    (SELECT count(*) FROM (SELECT FROM certificates_pooledkey LIMIT %(mark)s::integer) AS few) AS left
FROM taken
"""
_INTEND: Final = """
, intended AS (
    INSERT INTO certificates_issuance
        (id, tenant_id, agent_id, serial_number, key_uri, state, error, created_at)
    SELECT %(id)s, %(tenant)s, %(agent)s, %(serial)s, key_uri, %(state)s, '', %(created)s FROM taken
)
"""
_TAKE_ALONE: Final = _TAKE.format(also="")
_TAKE_FOR: Final = _TAKE.format(also=_INTEND)


def take() -> KeyRef | None:
    """A key of the pool; None when it is drained.

    Call it in the transaction that records what the key is for: a crash then leaves it in the pool.
    """
    return _take(_TAKE_ALONE, {})


def take_for(intent: Issuance) -> KeyRef | None:
    """A key of the pool for an intent, which is stored with it, both in one statement; None when drained."""
    facts = {
        "id": intent.id,
        "tenant": intent.tenant_id,
        "agent": intent.agent_id,
        "serial": intent.serial_number,
        "state": intent.state,
        "created": intent.created_at,
    }
    key = _take(_TAKE_FOR, facts)
    if key is not None:
        intent.key_uri = key.uri
        intent._state.adding, intent._state.db = False, environments.current().alias
    return key


def _take(statement: str, facts: dict[str, Any]) -> KeyRef | None:
    mark = low_water()
    taken = sql.prepared(statement, {**facts, "mark": mark + 1})
    if mark and (not taken or taken[0][2] <= mark):
        enqueue_on_commit(FILL)
    if not taken:
        log.info("the key pool is drained")
        return None
    return KeyRef(taken[0][0], taken[0][1])


def put_back(*, key: KeyRef, now: datetime) -> None:
    """Keep a key that nothing was certified with."""
    PooledKey.objects.get_or_create(key_uri=key.uri, defaults={"spki": key.spki, "created_at": now})


def wanted() -> int:
    """How many keys shall wait in the current environment's pool."""
    own: int | None = settings.KEY_POOL_SIZES.get(environments.current().value)
    return settings.KEY_POOL_SIZE if own is None else own


def low_water() -> int:
    """With fewer keys than this the pool is filled at once, with more when there is leisure."""
    return -(-wanted() // 2)


def fill(
    *,
    now: datetime,
    size: int | None = None,
    seconds: float | None = None,
    gives_way: bool = False,
    tell: Callable[[int], None] = lambda made: None,
) -> int:
    """Generate keys up to `size` (the setting), for `seconds` at most; how many were made. 503 errors of the
    HSM. `tell` hears of each key. With `gives_way` it ends when keys are taken meanwhile, if enough are left.
    """
    goal = wanted() if size is None else size
    deadline = None if seconds is None else time.monotonic() + seconds
    made, before = 0, PooledKey.objects.count()
    while before < goal and (deadline is None or time.monotonic() < deadline):
        put_back(key=generate(), now=now)
        made += 1
        tell(made)
        waiting = PooledKey.objects.count()
        if gives_way and low_water() <= waiting <= before:
            break
        before = waiting
    return made


def refill(*, now: datetime) -> int:
    """`fill()` as a worker does it: one in an environment, and a thread for `TURN_SECONDS` only, then again.

    A key costs as much of the processors as several certifications: while agents are being certified, only a
    pool that runs low is filled.
    """
    with _lease() as is_ours:
        if not is_ours:
            return 0
        made = fill(now=now, seconds=TURN_SECONDS, gives_way=True)
    waiting = PooledKey.objects.count()
    if waiting < wanted():
        enqueue(FILL, delay_seconds=0 if waiting < low_water() else REST_SECONDS)
    return made


@contextmanager
def _lease() -> Iterator[bool]:
    """Whether nobody else fills this environment's pool; without Redis everybody may."""
    name, mine = redis.key("key-pool", "filling"), secrets.token_hex(8)
    try:
        is_ours = bool(redis.client().set(name, mine, nx=True, ex=LEASE_SECONDS))
    except RedisError:
        yield True
        return
    try:
        yield is_ours
    finally:
        if is_ours:
            _give_up(name, mine)


def _give_up(name: str, mine: str) -> None:
    try:
        if redis.client().get(name) == mine.encode():
            redis.client().delete(name)
    except RedisError:
        log.info("the key pool's lease ends by itself")


def generate() -> KeyRef:
    """A fresh RSA-2048 key of the current environment's token."""
    return backend_for(environments.current()).generate_rsa(label=LABEL, spread=True)
