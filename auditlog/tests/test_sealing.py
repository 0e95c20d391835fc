"""Sealing: dense indexes, tiles that make the root, heads signed once their tree is committed."""

import pytest
from django.conf import settings
from django.db import connections

from auditlog import tasks
from auditlog.models import Leaf, PendingEntry
from auditlog.sealing import sealer
from auditlog.sealing.stored_rows import sealed_between
from auditlog.sealing.tree import StoredTiles, head
from auditlog.tests.factories import make_entries
from auditlog.tests.log_keys import root_of
from auditlog.tlog.merkle import root_from_inclusion
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.stores import sql
from compliance.stores.session_locks import TurnLock


def test_each_entry_gets_the_next_index() -> None:
    sealer.seal_all()
    before = head().size

    entries = make_entries(600)
    sealer.seal_all()

    found = Leaf.objects.filter(entry_id__in=[entry.id for entry in entries]).order_by("index")
    assert [leaf.index for leaf in found] == list(range(before, before + 600))
    assert [leaf.entry_id for leaf in found] == [entry.id for entry in entries]
    assert not PendingEntry.objects.exists()


def test_entries_behind_ids_that_no_entry_has_are_sealed(
    owned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealer.seal_all()
    monkeypatch.setattr(sealer, "ROUND", 3)
    sql.execute(
        "INSERT INTO auditlog_pendingentry (entry_id) SELECT gen_random_uuid() FROM generate_series(1, 7)"
    )
    first = make_entries(2)
    sql.execute(
        "INSERT INTO auditlog_pendingentry (entry_id) SELECT gen_random_uuid() FROM generate_series(1, 3)"
    )
    entries = [*first, *make_entries(5)]

    counts = [sealer.seal_queued() for _ in range(4)]

    found = Leaf.objects.filter(entry_id__in=[entry.id for entry in entries]).order_by("index")
    assert counts == [3, 3, 1, 0]
    assert [leaf.entry_id for leaf in found] == [entry.id for entry in entries]


def test_tiles_make_the_root_of_the_leaves() -> None:
    for count in (1, 255, 1, 300):
        make_entries(count)
        sealer.seal_all()

        root = root_of([entry.hash() for entry in sealed_between(0, head().size)])

        assert root == head().root == StoredTiles().root(head().size)


def test_sealed_entries_have_proofs() -> None:
    make_entries(300)
    sealer.seal_all()
    entries = sealed_between(0, head().size)
    stored = StoredTiles()

    for entry in entries[::37]:
        path = stored.inclusion_path(entry.index, head().size)
        assert root_from_inclusion(entry.index, head().size, entry.hash(), path) == head().root


@pytest.mark.parametrize("lock", [TurnLock.SEALING, sealer.LOCK])
def test_task_leaves_the_work_to_the_one_at_it(lock: int) -> None:
    make_entries()
    other = connections["default"].copy()
    other.settings_dict.update(settings.DATABASES_DIRECT.get("default", {}))
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [lock])

    tasks.seal.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)
    was_left = PendingEntry.objects.exists()
    other.close()
    tasks.seal.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)

    assert was_left
    assert not PendingEntry.objects.exists()
