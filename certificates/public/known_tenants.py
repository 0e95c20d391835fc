"""The tenants that look-ups by serial number met in this process, by the bucket their serial numbers name.

On Citus a look-up that names them asks the shard of their bucket alone. What it does not find there belongs
to a tenant not met yet, has a serial number from before these had buckets, or does not exist: then every
shard is asked, and its tenant is known from then on.
"""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from certificates.pki.serials import bucket_in
from compliance.core.bounded_cache import BoundedCache
from compliance.core.environments import Environment
from compliance.stores.hash_ranges import BUCKET_BITS, bucket_of

MOST_OF_A_BUCKET: Final = 256
"""Of more tenants those met last are known."""

_known: "BoundedCache[tuple[Environment, int], tuple[UUID, ...]]" = BoundedCache(2 << BUCKET_BITS)


def named_by(serials: Iterable[int], environment: Environment) -> set[UUID]:
    """Return the known tenants of the buckets that the serial numbers name."""
    buckets = {bucket_in(serial) for serial in serials}
    return {tenant for bucket in buckets for tenant in _known.get((environment, bucket)) or ()}


def learn(found: Iterable[tuple[int, UUID]], environment: Environment) -> None:
    """Remember the tenants of serial numbers that name their buckets."""
    for serial, tenant_id in found:
        bucket = bucket_of(tenant_id)
        known = _known.get((environment, bucket)) or ()
        if bucket == bucket_in(serial) and tenant_id not in known:
            _known.put((environment, bucket), (*known, tenant_id)[-MOST_OF_A_BUCKET:])


def forget() -> None:
    """Forget all tenants, as a process that starts knows none."""
    _known.clear()
