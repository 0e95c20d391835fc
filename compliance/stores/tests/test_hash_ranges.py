"""The hash of a tenant is the database's."""

from uuid import UUID, uuid4

from compliance.core.identifiers import new_id
from compliance.stores import sql
from compliance.stores.hash_ranges import BUCKET_BITS, bucket_of, uuid_hash

ENDS = [UUID(int=0), UUID(int=(1 << 128) - 1), *(UUID(int=1 << bit) for bit in range(128))]


def test_hash_is_that_of_the_database() -> None:
    ids = [*ENDS, *(uuid4() for _ in range(2_000)), *(new_id() for _ in range(2_000))]

    found = sql.query(
        "SELECT uuid_hash(id)::bit(32)::bigint, uuid_hash(id)::bit(32)::bit(12)::integer"
        " FROM unnest(%s::uuid[]) WITH ORDINALITY AS one (id, place) ORDER BY place",
        [ids],
    )

    assert [tuple(row) for row in found] == [(uuid_hash(one), bucket_of(one)) for one in ids]


def test_buckets_are_all_used() -> None:
    buckets = {bucket_of(uuid4()) for _ in range(16 << BUCKET_BITS)}

    assert buckets == set(range(1 << BUCKET_BITS))
