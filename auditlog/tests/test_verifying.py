"""Verification names what the owner of the tables has done to the log."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.db import transaction

from auditlog.models import AuditEntry, SignedHead
from auditlog.sealing.stored_rows import sealed_between
from auditlog.sealing.tree import head
from auditlog.tests.factories import seal_and_sign
from auditlog.tests.log_keys import SigningKey, make_witness_key, root_of
from auditlog.tests.logs import (
    commitments,
    drop,
    empty_log,
    entry_at,
    erase,
    make_log,
    rebuild_tree,
    record_erasure,
    roll_back,
    verify,
)
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.notes import Note
from auditlog.tlog.policy import Policy
from auditlog.tlog.tiles import HASH
from auditlog.verifying import last_verified
from auditlog.verifying.findings import Damage, LogOutcome
from auditlog.verifying.live_log import Demands, RecountedTree
from compliance.core.clock import now
from compliance.core.errors import Invalid
from compliance.stores import sql

COUNT = 600  # two full tiles and a partial one


@pytest.fixture(scope="module")
def log(owned_world_transaction: None) -> list[AuditEntry]:
    """A log in which nothing is wrong, whose owner has disabled the triggers."""
    empty_log()
    make_log(300)
    return make_log(COUNT - 300)


def the_flaw(damage: Damage, index: int | None = None, entry_id: object = None) -> None:
    """The verification finds this first."""
    verdict = verify()
    assert verdict.outcome is LogOutcome.TAMPERED
    first = verdict.flaws[0]
    assert (first.damage, first.index) == (damage, index), verdict.flaws
    assert entry_id is None or first.entry_id == str(entry_id)


def change(entry_id: str, column: str, value: str) -> None:
    """Change a column to an expression's value."""
    sql.execute(f"UPDATE auditlog_auditentry SET {column} = {value} WHERE id = %s", [entry_id])  # noqa: S608


def test_sound_log_is_verified(log: list[AuditEntry]) -> None:
    verdict = verify()

    assert (verdict.outcome, verdict.flaws, verdict.doubts) == (LogOutcome.VERIFIED, [], [])
    assert verdict.counts["entries"] == verdict.counts["size"] == verdict.counts["signed_up_to"] == COUNT
    assert verdict.counts["checkpoints"] == 2


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("description", "'nothing happened'"),
        ("created_at", "created_at + interval '1 microsecond'"),
        ("tenant_id", "gen_random_uuid()"),
        ("event_type", "'agent.created'"),
        ("actor_kind", "'agent'"),
        ("actor_id", "actor_id || ' '"),
        ("affected_id", "NULL"),
        ("metadata", "'{}'"),
    ],
)
@pytest.mark.parametrize("index", [0, 257, COUNT - 1])
def test_changed_entry_is_named(log: list[AuditEntry], column: str, value: str, index: int) -> None:
    entry_id = entry_at(index)
    change(entry_id, column, value)

    the_flaw(Damage.CHANGED, index, entry_id)


def test_changed_digit_of_metadata_is_named(log: list[AuditEntry]) -> None:
    index = next(n for n, one in enumerate(sealed_between(0, COUNT)) if '"big"' in str(one.row.metadata))
    value = "jsonb_set(metadata, '{big}', to_jsonb((metadata ->> 'big')::numeric + 1))"
    change(entry_at(index), "metadata", value)

    the_flaw(Damage.CHANGED, index)


NO_ROW = "DELETE FROM auditlog_auditentry WHERE id = (SELECT entry_id FROM auditlog_leaf WHERE index = 400)"
NO_LEAF = "DELETE FROM auditlog_leaf WHERE index = 400"
MOVE = "UPDATE auditlog_leaf SET index = {1} WHERE index = {0}"
OTHER_SALT = "UPDATE auditlog_leaf SET salts = set_byte(salts, 79, 255 - get_byte(salts, 79)) WHERE index = 3"


@pytest.mark.parametrize(
    ("statements", "damage", "index"),
    [
        ([NO_ROW], Damage.MISSING, 400),
        ([NO_ROW, NO_LEAF], Damage.MISSING, 400),
        ([NO_ROW, NO_LEAF, MOVE.format(401, 400)], Damage.SWAPPED, 400),
        ([MOVE.format(10, -1), MOVE.format(500, 10), MOVE.format(-1, 500)], Damage.SWAPPED, 10),
        (
            ["ALTER TABLE auditlog_leaf DROP CONSTRAINT auditlog_leaf_pkey", MOVE.format(11, 10)],
            Damage.INSERTED,
            10,
        ),
        (
            ["INSERT INTO auditlog_leaf SELECT 600, gen_random_uuid(), salts FROM auditlog_leaf LIMIT 1"],
            Damage.INSERTED,
            600,
        ),
        ([OTHER_SALT], Damage.CHANGED, 3),
        (["DELETE FROM auditlog_auditentry", "DELETE FROM auditlog_leaf"], Damage.MISSING, 0),
        (["INSERT INTO auditlog_pendingentry (entry_id) VALUES (gen_random_uuid())"], Damage.MISSING, None),
        (["INSERT INTO auditlog_tile VALUES (2, 0, sha256(''))"], Damage.TILE, None),
        (["UPDATE auditlog_treehead SET root = sha256('x')"], Damage.HEAD, None),
        (["UPDATE auditlog_signedhead SET size = 599 WHERE size = 600"], Damage.CHECKPOINT, None),
    ],
)
def test_tampering_is_named_with_its_place(
    log: list[AuditEntry], statements: list[str], damage: Damage, index: int | None
) -> None:
    for statement in statements:
        sql.execute(statement)

    the_flaw(damage, index)


def test_entry_inserted_past_the_queue_is_named(log: list[AuditEntry]) -> None:
    sql.execute("ALTER TABLE auditlog_auditentry DISABLE TRIGGER USER")
    sql.execute(
        "INSERT INTO auditlog_auditentry (id, tenant_id, event_type, actor_type, actor_kind, actor_id,"
        " created_at) SELECT '00000000-0000-7000-8000-000000000000', tenant_id, event_type, actor_type,"
        " actor_kind, actor_id, created_at FROM auditlog_auditentry LIMIT 1"
    )

    the_flaw(Damage.INSERTED, None, "00000000-0000-7000-8000-000000000000")


def test_exchanged_contents_are_named(log: list[AuditEntry]) -> None:
    one, other = entry_at(10), entry_at(290)
    # They have one tenant.
    columns = (
        "event_type, actor_type, actor_kind, actor_id, description, affected_id, metadata::text, created_at"
    )
    contents = f"SELECT {columns} FROM auditlog_auditentry WHERE id = %s"  # noqa: S608
    (first,), (second,) = sql.query(contents, [one]), sql.query(contents, [other])
    for entry_id, row in ((one, second), (other, first)):
        sql.execute(
            "UPDATE auditlog_auditentry SET event_type = %s, actor_type = %s, actor_kind = %s, actor_id = %s,"
            " description = %s, affected_id = %s, metadata = %s, created_at = %s WHERE id = %s",
            [*row, entry_id],
        )

    the_flaw(Damage.CHANGED, 10, one)


@pytest.mark.parametrize("place", [(0, 0), (0, 2), (1, 0)])
def test_changed_tile_is_named(log: list[AuditEntry], place: tuple[int, int]) -> None:
    sql.execute(
        "UPDATE auditlog_tile SET hashes = set_byte(hashes, 5, 255 - get_byte(hashes, 5))"
        " WHERE level = %s AND index = %s",
        place,
    )

    verdict = verify()

    assert [flaw.damage for flaw in verdict.flaws] == [Damage.TILE]
    assert f"tile {place[0]}/{place[1]} " in verdict.flaws[0].detail


def test_log_rolled_back_behind_a_checkpoint_is_found(log: list[AuditEntry]) -> None:
    roll_back(300, keep_checkpoints=True)

    the_flaw(Damage.ROLLED_BACK)


def test_log_rolled_back_with_its_checkpoints_shows_against_a_newer_one(log: list[AuditEntry]) -> None:
    newest = Note.parse(SignedHead.objects.get(size=COUNT).note)
    roll_back(300)

    alone, against = verify(), verify(Demands(against=[("kept.txt", newest)]))

    assert alone.outcome is LogOutcome.VERIFIED
    assert [flaw.damage for flaw in against.flaws] == [Damage.ROLLED_BACK]
    assert "kept.txt states 600 leaves, the tree has 300" in against.flaws[0].detail


def test_rewritten_tree_contradicts_its_checkpoints(log: list[AuditEntry]) -> None:
    sql.execute("UPDATE auditlog_auditentry SET description = 'x' WHERE id = %s", [entry_at(400)])
    rebuild_tree(COUNT)

    verdict = verify()

    assert [flaw.damage for flaw in verdict.flaws] == [Damage.CHECKPOINT]
    assert "only a checkpoint kept outside can tell" in verdict.flaws[0].detail


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (100, "only a checkpoint kept outside can tell"),
        (400, "the first 300 leaves are those of a checkpoint kept outside"),
    ],
)
def test_only_checkpoints_kept_outside_bound_a_rewriting(
    log: list[AuditEntry], place: int, said: str
) -> None:
    """Whoever rewrites the log rewrites the heads in its database, too."""
    kept = [(f"{row.size}.txt", Note.parse(row.note)) for row in SignedHead.objects.order_by("size")]
    sql.execute("UPDATE auditlog_auditentry SET description = 'x' WHERE id = %s", [entry_at(place)])
    rebuild_tree(COUNT)
    sql.execute("DELETE FROM auditlog_signedhead")
    seal_and_sign()

    verdict = verify(Demands(against=kept))

    assert said in verdict.flaws[0].detail


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE auditlog_auditentry SET description = 'x' WHERE id = %s",
        "DELETE FROM auditlog_auditentry WHERE id <> %s",
    ],
)
def test_doctor_remembers_a_failed_verification_until_one_passes(
    log: list[AuditEntry], settings: LazySettings, tmp_path: Path, statement: str
) -> None:
    settings.AUDIT_VERIFIED_FILE = str(tmp_path / "verified.json")
    verify()
    with transaction.atomic():
        backup = transaction.savepoint()
        sql.execute(statement, [entry_at(100)])
        assert verify().outcome is LogOutcome.TAMPERED
        transaction.savepoint_rollback(backup)

    assert "audit_verify, " in last_verified.problem(now())
    assert verify().outcome is LogOutcome.VERIFIED
    assert last_verified.problem(now()) == ""


def test_log_rewritten_and_signed_anew_shows_against_an_old_checkpoint(
    log: list[AuditEntry], settings: LazySettings, tmp_path: Path
) -> None:
    settings.AUDIT_VERIFIED_FILE = str(tmp_path / "verified.json")
    assert verify().outcome is LogOutcome.VERIFIED
    old = Note.parse(SignedHead.objects.get(size=COUNT).note)
    sql.execute("UPDATE auditlog_auditentry SET description = 'x' WHERE id = %s", [entry_at(4)])
    rebuild_tree(COUNT)
    sql.execute("DELETE FROM auditlog_signedhead")
    seal_and_sign()

    remembered = verify()
    (tmp_path / "verified.json").unlink()
    against = verify(Demands(against=[("old.txt", old)]))

    for verdict, source in ((remembered, "the checkpoint verified last"), (against, "old.txt")):
        assert [flaw.damage for flaw in verdict.flaws] == [Damage.CHECKPOINT]
        assert verdict.flaws[0].detail.startswith(source)


def test_doctor_notices_a_late_verification_and_another_beginning(
    log: list[AuditEntry], settings: LazySettings, tmp_path: Path
) -> None:
    settings.AUDIT_VERIFIED_FILE = str(tmp_path / "verified.json")
    new = last_verified.problem(now())
    never = last_verified.problem(now() + timedelta(days=9))
    verify()
    fresh = last_verified.problem(now())
    late = last_verified.problem(now() + timedelta(days=9))
    sql.execute("UPDATE auditlog_tile SET hashes = set_byte(hashes, 5, 0) || sha256('') WHERE index = 2")
    other = last_verified.problem(now())

    assert (new, fresh) == ("", "")
    assert never == "audit_verify has verified nothing yet"
    assert late.startswith("last verified on 20")
    assert other == "the log no longer begins with the 600 entries that were verified last"


def test_damaged_record_of_the_last_verification_is_said(
    owned_world_transaction: None, settings: LazySettings, tmp_path: Path
) -> None:
    settings.AUDIT_VERIFIED_FILE = str(tmp_path / "verified.json")
    for contents in ("{", "[]", '{"live": {}}', '{"live": {"note": "x", "verified_at": "y"}}'):
        (tmp_path / "verified.json").write_text(contents)

        with pytest.raises(Invalid, match="AUDIT_VERIFIED_FILE"):
            verify()


def test_checkpoint_forged_with_another_key_is_found(log: list[AuditEntry]) -> None:
    origin = Checkpoint.parse(Note.parse(SignedHead.objects.get(size=COUNT).note).text).origin
    text = Checkpoint(origin, COUNT, bytes(head().root)).text()
    forged = Note(text, (SigningKey(origin).sign(text),)).encode()
    sql.execute("UPDATE auditlog_signedhead SET note = %s WHERE size = %s", [forged, COUNT])

    the_flaw(Damage.CHECKPOINT)


def test_log_without_a_checkpoint_cannot_be_told(log: list[AuditEntry]) -> None:
    sql.execute("DELETE FROM auditlog_signedhead")

    verdict = verify()

    assert (verdict.outcome, verdict.flaws) == (LogOutcome.CANNOT_TELL, [])


def test_policy_demands_its_witnesses(log: list[AuditEntry]) -> None:
    witness = make_witness_key()
    policy = Policy.parse(f"witness w {witness.public.encode()}\nquorum w\n")
    row = SignedHead.objects.get(size=300)

    before = verify(Demands(policy=policy))
    note = Note.parse(row.note)
    cosigned = Note(note.text, (*note.signatures, witness.sign(note.text))).encode()
    sql.execute("UPDATE auditlog_signedhead SET note = %s WHERE size = 300", [cosigned])
    after = verify(Demands(policy=policy))

    assert before.outcome is LogOutcome.CANNOT_TELL
    assert (after.outcome, after.counts["witnessed_up_to"]) == (LogOutcome.VERIFIED, 300)


@pytest.mark.parametrize(("part", "shown"), [("actor_id", "'erased'"), ("metadata", "NULL")])
def test_recorded_erasure_is_counted(log: list[AuditEntry], part: str, shown: str) -> None:
    record_erasure(erase(5, part, shown), part)

    verdict = verify()

    assert (verdict.outcome, verdict.flaws) == (LogOutcome.VERIFIED, [])
    assert verdict.counts["erased_parts"] == 1


def test_erasure_that_nobody_recorded_is_named(log: list[AuditEntry]) -> None:
    entry_id = erase(5, "description", "NULL")

    the_flaw(Damage.UNRECORDED, 5, entry_id)


def test_erasure_of_another_part_than_recorded_is_named(log: list[AuditEntry]) -> None:
    entry_id = erase(5, "description", "NULL")
    record_erasure(entry_id, "metadata")

    the_flaw(Damage.UNRECORDED, 5, entry_id)


def test_erased_part_that_shows_something_is_named(log: list[AuditEntry]) -> None:
    entry_id = erase(5, "description", "'something else'")

    the_flaw(Damage.CHANGED, 5, entry_id)


def test_head_of_an_entry_passed_off_as_erased_is_named(log: list[AuditEntry]) -> None:
    sealed = sealed_between(5, 6)[0]
    kept = json.dumps({"head": commitments(sealed.row, sealed.salts)["head"]})
    sql.execute("UPDATE auditlog_leaf SET erased = %s WHERE index = 5", [kept])
    sql.execute("UPDATE auditlog_auditentry SET event_type = 'agent.created' WHERE id = %s", [sealed.row.id])

    the_flaw(Damage.CHANGED, 5, sealed.row.id)


@pytest.mark.parametrize(
    ("ranges", "is_covered"),
    [
        ([(0, 100), (100, 300)], True),
        ([(0, 310)], True),
        ([(200, 300)], True),  # the record of the first 200 is itself past its retention
        ([], False),
        ([(0, 299)], False),
        ([(0, 100), (200, 300)], False),
    ],
)
def test_drops_are_covered_by_records(
    log: list[AuditEntry], ranges: list[tuple[int, int]], is_covered: bool
) -> None:
    for start, end in ranges:
        (entry,) = make_log(1)
        sql.execute(
            "UPDATE auditlog_auditentry SET event_type = 'audit.dropped', metadata = %s WHERE id = %s",
            [json.dumps({"from": start, "to": end}), entry.id],
        )
    sql.execute("DELETE FROM auditlog_signedhead WHERE size > %s", [COUNT])
    rebuild_tree(head().size)
    seal_and_sign()
    drop(300)

    verdict = verify()

    assert verdict.counts["dropped"] == 300
    assert [flaw.damage for flaw in verdict.flaws] == ([] if is_covered else [Damage.UNRECORDED])


@pytest.mark.parametrize(
    ("count", "block"), [(1, 256), (255, 256), (1300, 256), (1300, 1024), (66_049, 65_536)]
)
def test_recounted_tree_has_the_root_of_every_size(count: int, block: int) -> None:
    hashes = [n.to_bytes(HASH, "big") for n in range(count)]
    tree = RecountedTree()

    for start in range(0, count, block):
        end = min(count, start + block)
        tree.add(hashes[start:end], end - start)
        for size in {min(end, start + more) for more in (1, 77, 256, 300, block)}:
            assert tree.root(size) == root_of(hashes[:size])
