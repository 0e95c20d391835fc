"""What a service that was taken over may do with its role: not enough to stop the log or to lie unnoticed."""

import pytest
from django.db import Error

from auditlog.errors import TreeDamaged
from auditlog.models import AuditEntry, PendingEntry, SignedHead
from auditlog.proving import proofs
from auditlog.sealing import keys, sealer
from auditlog.sealing.tree import StoredTiles, forged_checkpoint, head, latest_checkpoint
from auditlog.tests.factories import make_entries, seal_and_sign
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.tiles import Coordinates, extended, partial_tiles
from compliance.core import environments
from compliance.core.clock import now
from compliance.stores import sql

SEAL = (
    "SELECT auditlog_seal(%s, %s::bigint[], %s::uuid[], %s::bytea[],"
    " %s::smallint[], %s::bigint[], %s::bytea[], %s)"
)
LINE = "— w.example AAAAAAAA\n"


def store(size: int, root: bytes, note: str) -> None:
    with environments.atomic():
        SignedHead.objects.create(size=size, root=root, note=note, signed_at=now())


@pytest.fixture
def newest() -> SignedHead:
    make_entries(3)
    return seal_and_sign()


@pytest.mark.parametrize("size", [10**15, 0, -1])
def test_checkpoint_of_no_tree_is_refused(newest: SignedHead, size: int) -> None:
    with pytest.raises(Error, match="not a checkpoint of the tree"):
        store(size, bytes(newest.root), newest.note.replace(f"\n{newest.size}\n", f"\n{size}\n"))


def test_checkpoint_between_two_of_the_tree_is_refused(newest: SignedHead) -> None:
    make_entries(2)
    sealer.seal_all()
    text = Checkpoint(keys.origin(), newest.size + 1, bytes(32)).text()

    with pytest.raises(Error, match="not a checkpoint of the tree"):
        store(newest.size + 1, bytes(32), f"{text}\n{LINE}")


@pytest.mark.parametrize("damage", ["junk", "", "x\n3\n\n— a AAAA\n"])
def test_note_that_does_not_state_the_row_is_refused(newest: SignedHead, damage: str) -> None:
    make_entries()
    with pytest.raises(Error, match="not a checkpoint of the tree"):
        store(newest.size - 1, bytes(newest.root), damage)


def test_checkpoint_that_the_log_did_not_sign_is_not_served(newest: SignedHead) -> None:
    make_entries()
    sealer.seal_all()
    _, _, signatures = newest.note.partition("\n\n")
    text = Checkpoint(keys.origin(), head().size, bytes(head().root)).text()
    store(head().size, bytes(head().root), f"{text}\n{signatures}")

    assert latest_checkpoint() == newest
    assert proofs.checkpoint(now=now()) == newest
    assert forged_checkpoint() is not None


@pytest.mark.parametrize("more", ["junk", "junk\n", "\n", LINE.strip(), LINE * 70])
def test_notes_grow_by_cosignatures_only(newest: SignedHead, more: str) -> None:
    newest.note += more
    with pytest.raises(Error, match="only grows"), environments.atomic():
        newest.save(update_fields=["note"])


def seal_by_hand(
    *, salts: bytes = bytes(80), root: bytes = bytes(32), tiles: dict[Coordinates, bytes] | None = None
) -> None:
    """Call the function as the sealer does, for one entry, with tiles instead of or beside the right ones."""
    (entry,) = make_entries()
    size, pending = head().size, PendingEntry.objects.get(entry_id=entry.id)
    right = extended(size, StoredTiles().load(partial_tiles(size)), [bytes(32)])
    levels, indexes = zip(*(given := right if tiles is None else tiles), strict=True)
    queued = [[pending.id], [entry.id], [salts]]
    with environments.atomic():
        sql.query(SEAL, [size, *queued, list(levels), list(indexes), list(given.values()), root])


def test_what_the_sealer_gives_is_sealed() -> None:
    size = head().size
    seal_by_hand()

    assert head().size == size + 1


@pytest.mark.parametrize(
    ("place", "octets"),
    [
        *(((0, 0), 31), ((0, 0), 0), ((0, -1), 8192), ((0, 10**9), 32)),
        *(((5, 0), 32), ((8, 0), 32), ((-1, 0), 32)),
    ],
)
def test_tile_that_the_grown_tree_does_not_have_is_refused(place: Coordinates, octets: int) -> None:
    with pytest.raises(Error, match="has these tiles"):
        seal_by_hand(tiles={place: bytes(octets)})


def test_tile_too_few_is_refused() -> None:
    make_entries(255 - head().size % 256)
    sealer.seal_all()
    size = head().size
    right = extended(size, StoredTiles().load(partial_tiles(size)), [bytes(32)])
    assert len(right) > 1

    with pytest.raises(Error, match="has these tiles"):
        seal_by_hand(tiles=dict(list(right.items())[:1]))


@pytest.mark.parametrize(("salts", "root"), [(79, 32), (80, 31)])
def test_salts_and_root_of_another_length_are_refused(salts: int, root: int) -> None:
    with pytest.raises(Error, match="has these tiles"):
        seal_by_hand(salts=bytes(salts), root=bytes(root))


def test_bundle_with_a_changed_entry_is_not_served(owned: None, newest: SignedHead) -> None:
    last = head().size - 1
    path = f"{last // 256:03d}.p/{last % 256 + 1}"
    assert proofs.bundle(path)
    sql.execute("ALTER TABLE auditlog_auditentry DISABLE TRIGGER auditlog_no_change")
    sql.execute(
        "UPDATE auditlog_auditentry SET description = 'Eve' WHERE id ="
        " (SELECT entry_id FROM auditlog_leaf WHERE index = %s)",
        [last],
    )

    with pytest.raises(TreeDamaged):
        proofs.bundle(path)


def test_tile_that_is_gone_is_not_served_empty(owned: None, newest: SignedHead) -> None:
    path = f"{newest.size // 256:03d}.p/{newest.size % 256}"
    assert AuditEntry.objects.exists()
    sql.execute("ALTER TABLE auditlog_tile DISABLE TRIGGER USER")
    sql.execute("DELETE FROM auditlog_tile")

    with pytest.raises(TreeDamaged):
        proofs.tile("0", path)
