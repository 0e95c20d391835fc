"""The hash by which Citus divides tenants, and the part of its range in which a tenant lies.

Each shard holds a range of the hash of `tenant_id`. Tenants whose hashes begin with the same bits are in one
shard, unless one was isolated into a shard of its own.
"""

from typing import Final
from uuid import UUID

BUCKET_BITS: Final = 12

_HASH_BITS: Final = 32
_MASK: Final = (1 << _HASH_BITS) - 1
_OCTETS: Final = 16
_START: Final = 0x9E3779B9 + _OCTETS + 3923095
_MIX: Final = (4, 6, 8, 16, 19, 4)
_FINAL: Final = (14, 11, 25, 16, 4, 14, 24)


def bucket_of(tenant_id: UUID) -> int:
    """Return the first `BUCKET_BITS` bits of the tenant's hash."""
    return uuid_hash(tenant_id) >> (_HASH_BITS - BUCKET_BITS)


def uuid_hash(value: UUID) -> int:
    """Return what PostgreSQL's `uuid_hash` computes on a little-endian machine, as an unsigned number.

    Source: `hash_bytes` in PostgreSQL's src/common/hashfn.c, which is lookup3 by Bob Jenkins.
    """
    words = [int.from_bytes(value.bytes[at : at + 4], "little") for at in range(0, _OCTETS, 4)]
    a, b, c = ((_START + word) & _MASK for word in words[:3])
    for bits in _MIX:
        a = ((a - c) & _MASK) ^ _rotated(c, bits)
        c = (c + b) & _MASK
        a, b, c = b, c, a
    a = (a + words[3]) & _MASK
    for bits in _FINAL:
        c = ((c ^ b) - _rotated(b, bits)) & _MASK
        a, b, c = b, c, a
    return b


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (_HASH_BITS - bits)) & _MASK
