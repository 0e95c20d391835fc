"""Keys made in advance: certifying does not wait for an RSA key generation, which may take seconds."""

import logging
from datetime import datetime

from django.conf import settings

from certificates.models import PooledKey
from compliance import environments
from compliance.keys import KeyRef, backend_for
from compliance.tasks import enqueue_on_commit

log = logging.getLogger(__name__)

FILL = "certificates.fill_key_pool"
LABEL = "agent"


def take() -> KeyRef | None:
    """A key of the pool for one agent; None when it is drained.

    Call it in the transaction that records what the key is for: a crash then leaves it in the pool.
    """
    pooled = PooledKey.objects.next_free()
    if pooled is None:
        log.info("the key pool is drained")
        return None
    key = KeyRef(pooled.key_uri, bytes(pooled.spki))
    pooled.delete()
    enqueue_on_commit(FILL)
    return key


def put_back(*, key: KeyRef, now: datetime) -> None:
    """Keep a key that nothing was certified with."""
    PooledKey.objects.get_or_create(key_uri=key.uri, defaults={"spki": key.spki, "created_at": now})


def fill(*, now: datetime, size: int | None = None) -> int:
    """Generate keys up to `size` (the setting KEY_POOL_SIZE); how many were made. 503 errors of the HSM."""
    wanted = settings.KEY_POOL_SIZE if size is None else size
    made = 0
    while PooledKey.objects.count() < wanted:
        put_back(key=generate(), now=now)
        made += 1
    return made


def generate() -> KeyRef:
    """A fresh RSA-2048 key of the current environment's token."""
    return backend_for(environments.current()).generate_rsa(label=LABEL, spread=True)
