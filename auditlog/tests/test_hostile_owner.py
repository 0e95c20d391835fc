"""What an owner does so that verification breaks or finds nothing is named, and sealing goes on."""

import pytest

from auditlog import tasks
from auditlog.models import AuditEntry, PendingEntry
from auditlog.sealing import sealer
from auditlog.sealing.tree import head, latest_checkpoint
from auditlog.tests.factories import seal_and_sign
from auditlog.tests.logs import empty_log, make_log, verify
from auditlog.verifying.findings import Damage, LogOutcome
from compliance.core import environments
from compliance.core.identifiers import new_id
from compliance.stores import sql

COUNT = 300
ENTRY = (
    "INSERT INTO auditlog_auditentry"
    " (id, tenant_id, event_type, actor_type, actor_kind, actor_id, description, metadata, created_at) VALUES"
    " (%s, gen_random_uuid(), {event_type}, 'user', 'person', {actor_id}, {actor_id}, {metadata}, now())"
)
UNNAMED = "ALTER TABLE auditlog_leaf DROP CONSTRAINT auditlog_leaf_pkey, ALTER index DROP NOT NULL;"
UNSEEN = "ALTER TABLE auditlog_auditentry DISABLE TRIGGER USER"
NO_SALT = "\\x00000000000000000000000000000000"


@pytest.fixture(scope="module")
def log(owned_world_transaction: None) -> list[AuditEntry]:
    """A log in which nothing is wrong, whose owner has disabled the triggers."""
    empty_log()
    return make_log(COUNT)


def insert(event_type: str = "'agent.updated'", actor_id: str = "'x'", metadata: str = "NULL") -> str:
    entry_id = str(new_id())
    values = {"event_type": event_type, "actor_id": actor_id, "metadata": metadata}
    sql.execute(ENTRY.format(**values), [entry_id])
    return entry_id


def nested(levels: int) -> str:
    return f"(repeat('[', {levels}) || repeat(']', {levels}))::jsonb"


@pytest.mark.parametrize(
    "content",
    [
        {"metadata": nested(64)},
        {"metadata": nested(65)},
        {"metadata": nested(6000)},
        {"metadata": "('{\"a\":' || repeat('9', 5000) || '}')::jsonb"},
        {"metadata": "('{\"a\":1.' || repeat('9', 15000) || '}')::jsonb"},
        {"metadata": "'[1e400, -1e400, 1e-400]'"},
        {"metadata": '\'{"\U0001f600": 1, "\uffff": 2}\''},
        {"metadata": "to_jsonb(repeat('[', 100))"},
        {"metadata": "'null'"},
        {"event_type": "repeat(chr(8232), 64)"},
        {"actor_id": "''"},
        {"actor_id": "chr(1) || chr(127) || '\"'"},
    ],
)
def test_strange_contents_are_sealed_and_verified(log: list[AuditEntry], content: dict[str, str]) -> None:
    insert(**content)

    seal_and_sign()

    assert (verify().outcome, head().size) == (LogOutcome.VERIFIED, COUNT + 1)


@pytest.mark.parametrize(
    "change",
    [
        *(f"erased = '{value}'" for value in ("[]", '"x"', "5", "null", '{"head": "00"}', '{"x": "y"}')),
        *("salts = salts || '\\x00'", "salts = ''"),
        f"salts = overlay(salts PLACING '{NO_SALT}'::bytea FROM 49 FOR 16),"
        " erased = jsonb_build_object('description', repeat('z', 64))",
    ],
)
def test_strange_salts_and_erasures_are_named(log: list[AuditEntry], change: str) -> None:
    sql.execute(f"UPDATE auditlog_leaf SET {change} WHERE index = 5")  # noqa: S608

    first = verify().flaws[0]

    assert (first.damage, first.index) == (Damage.CHANGED, 5)


@pytest.mark.parametrize(
    "change", ["size = -5", "size = 4000000000", "size = 1000000000000000", "minimum_index = -7", "root = ''"]
)
def test_strange_head_is_named(log: list[AuditEntry], change: str) -> None:
    sql.execute(f"UPDATE auditlog_treehead SET {change}")  # noqa: S608

    assert verify().outcome is LogOutcome.TAMPERED


@pytest.mark.parametrize(
    ("statement", "damage"),
    [
        ("DELETE FROM auditlog_treehead", Damage.HEAD),
        ("INSERT INTO auditlog_tile VALUES (-1, 0, '')", Damage.TILE),
        ("INSERT INTO auditlog_tile VALUES (9, 0, '')", Damage.TILE),
        ("INSERT INTO auditlog_tile VALUES (30000, 0, '')", Damage.TILE),
        ("INSERT INTO auditlog_signedhead VALUES (-3, '', '', now(), true)", Damage.CHECKPOINT),
        ("INSERT INTO auditlog_signedhead VALUES (0, '', '', now(), true)", Damage.CHECKPOINT),
    ],
)
def test_missing_head_and_strange_tiles_and_checkpoints_are_named(
    log: list[AuditEntry], statement: str, damage: Damage
) -> None:
    sql.execute(statement)

    assert [flaw.damage for flaw in verify().flaws] == [damage]


def test_inserted_entry_with_a_place_that_is_none_is_named(log: list[AuditEntry]) -> None:
    sql.execute(UNNAMED)
    sql.execute(UNSEEN)
    entry_id = insert()
    sql.execute("INSERT INTO auditlog_leaf (entry_id, salts) VALUES (%s, '')", [entry_id])

    assert [(flaw.damage, flaw.entry_id) for flaw in verify().flaws] == [(Damage.INSERTED, entry_id)]


def test_erasure_recorded_for_another_tenant_is_unrecorded(log: list[AuditEntry]) -> None:
    sealed = log[7].id
    sql.execute("UPDATE auditlog_leaf SET erased = %s WHERE entry_id = %s", ['{"metadata": ""}', sealed])
    entry_id = insert("'audit.erased'", metadata='\'{"parts": ["metadata"]}\'')
    sql.execute("UPDATE auditlog_auditentry SET affected_id = %s WHERE id = %s", [sealed, entry_id])

    assert Damage.UNRECORDED in [flaw.damage for flaw in verify().flaws]


@pytest.mark.parametrize("size", [COUNT, 10**15])
def test_unsigned_checkpoint_is_not_believed(log: list[AuditEntry], size: int) -> None:
    sql.execute("DELETE FROM auditlog_signedhead")
    sql.execute("INSERT INTO auditlog_signedhead VALUES (%s, '', 'junk', now(), true)", [size])
    insert()

    tasks._seal_and_sign()

    newest = latest_checkpoint()
    assert newest is not None
    assert newest.size == head().size == COUNT + 1


def test_tree_smaller_than_a_signed_one_is_not_signed(log: list[AuditEntry]) -> None:
    sql.execute("UPDATE auditlog_treehead SET size = size - 1")

    with pytest.raises(Exception, match="rolled back"):
        sealer.sign_head(now=log[0].created_at)


def test_sealed_entry_queued_again_holds_up_no_other(log: list[AuditEntry]) -> None:
    sql.execute("INSERT INTO auditlog_pendingentry (entry_id) SELECT entry_id FROM auditlog_leaf LIMIT 5")
    insert()

    seal_and_sign()

    verdict = verify()
    assert (head().size, PendingEntry.objects.count()) == (COUNT + 1, 5)
    assert {flaw.damage for flaw in verdict.flaws} == {Damage.INSERTED}
    assert verdict.flaw_count == 5


def test_entry_queued_twice_is_sealed_once(log: list[AuditEntry]) -> None:
    entry_id = insert()
    sql.execute("INSERT INTO auditlog_pendingentry (entry_id) VALUES (%s)", [entry_id])

    sealer.seal_all()

    assert head().size == COUNT + 1


def test_missing_tile_stops_sealing_with_a_reason(
    log: list[AuditEntry], caplog: pytest.LogCaptureFixture
) -> None:
    sql.execute("DELETE FROM auditlog_tile")
    insert()

    tasks._seal_and_sign()

    assert "does not grow" in caplog.text
    assert head().size == COUNT


@pytest.mark.parametrize("moment", ["infinity", "0044-03-15 BC", "12000-01-01"])
def test_moments_that_cannot_be_read_are_refused(owned_world_transaction: None, moment: str) -> None:
    statement = ENTRY.format(event_type="'agent.updated'", actor_id="'x'", metadata="NULL")
    with pytest.raises(Exception, match="auditlog_created_at_sane"), environments.atomic():
        sql.execute(statement.replace("now()", f"'{moment}'"), [new_id()])
