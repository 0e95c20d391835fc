"""Keys made in advance, so that certifying does not wait seconds for an RSA key generation."""

import logging
import time
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings

from certificates.errors import KeysTaken
from certificates.issuing import wrapped_keys
from certificates.models import Issuance, PooledKey
from compliance.api.rate_limits import hit, refusal
from compliance.core import environments
from compliance.core.shares import AllTaken, SharedSlots
from compliance.core.tasks import enqueue, enqueue_on_commit
from compliance.keys.base import KeyRef, KeyStorage
from compliance.keys.registry import backend_for
from compliance.stores.session_locks import TurnLock, locked

log = logging.getLogger(__name__)

FILL = "certificates.fill_key_pool"
LABEL = "agent"
GENERATING: Final = SharedSlots(2)
"""Keys that a process makes at once for requests."""
WAIT_SECONDS: Final = 10.0
TURN_SECONDS: Final = 20.0


def take_for(intent: Issuance) -> KeyRef | None:
    """Take a key and commit the intent that names it; None if there is none for the tenant.

    A tenant that takes many leaves the pool's last half to others.
    """
    lately = hit("pool_keys", f"{environments.current().value}:{intent.tenant_id}")
    # Below it the pool is filled even while agents are being certified.
    low_water = -(-int(settings.KEY_POOL_SIZE) // 2)
    with environments.atomic():
        ready = PooledKey.objects.filter(storage=storage().value)
        left = ready.count()
        # Named by row, since what others take at the same time is still in a count.
        reserved = ready.order_by("-id").values("id")[: 0 if lately.allowed else low_water]
        free = ready.exclude(id__in=reserved).order_by("id")
        taken = free.select_for_update(skip_locked=True).first()
        if taken is not None:
            left -= 1
            intent.key_uri = taken.key_uri
            intent.save(force_insert=True)
            PooledKey.objects.filter(id=taken.id).delete()
        if left < low_water:
            enqueue_on_commit(FILL)
    if taken is None:
        log.info("the key pool has no key")
        return None
    return KeyRef(taken.key_uri, bytes(taken.spki), storage())


def generate_for(tenant_id: UUID, *, now: datetime) -> KeyRef:
    """Generate a key that a request of the tenant waits for. Raises: KeysTaken."""
    try:
        with GENERATING.take(tenant_id, seconds=WAIT_SECONDS):
            return generate(now=now)
    except AllTaken as error:
        raise KeysTaken(headers=refusal(GENERATING.share, 1, now=now).headers()) from error


def put_back(*, key: KeyRef, now: datetime) -> None:
    about = {"spki": key.spki, "storage": key.storage.value, "created_at": now}
    PooledKey.objects.get_or_create(key_uri=key.uri, defaults=about)


def storage() -> KeyStorage:
    is_wrapped = settings.AGENT_KEYS == KeyStorage.WRAPPED
    return KeyStorage.WRAPPED if is_wrapped else KeyStorage.RESIDENT


def waiting() -> int:
    return PooledKey.objects.filter(storage=storage().value).count()


def fill(*, now: datetime, size: int | None = None, seconds: float | None = None) -> int:
    """Generate keys up to `size` (by default the target), for at most `seconds`; return how many."""
    goal = settings.KEY_POOL_SIZE if size is None else size
    deadline = None if seconds is None else time.monotonic() + seconds
    made = 0
    while waiting() < goal and (deadline is None or time.monotonic() < deadline):
        put_back(key=generate(now=now), now=now)
        made += 1
    return made


def refill(*, now: datetime) -> int:
    """Fill the pool from a worker, one of an environment at a time, for `TURN_SECONDS`, then again."""
    with locked(TurnLock.KEY_POOL) as is_mine:
        if not is_mine:
            return 0
        made = fill(now=now, seconds=TURN_SECONDS)
    if waiting() < settings.KEY_POOL_SIZE:
        enqueue(FILL)
    return made


def generate(*, now: datetime) -> KeyRef:
    """Generate an RSA-2048 key in the current environment's token; a wrapped one is stored."""
    backend = backend_for(environments.current())
    if storage() is KeyStorage.RESIDENT:
        return backend.generate_rsa(label=LABEL, spread=True)
    wrapped = backend.generate_wrapped(wrapped_keys.current(), label=LABEL)
    wrapped_keys.store(wrapped=wrapped, now=now)
    return wrapped.key
