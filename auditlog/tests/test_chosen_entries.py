"""What the comparison of chosen entries with the tree says of each way to tamper with the log."""

from typing import Any

import pytest

from auditlog.models import AuditEntry
from auditlog.sealing.tree import latest_checkpoint
from auditlog.tests.factories import seal_and_sign
from auditlog.tests.logs import empty_log, make_log
from auditlog.verifying.chosen_entries import ComparedEntries, compare, places_without_entry
from compliance.core.identifiers import new_id
from compliance.stores import sql

BEFORE, CHOSEN, AFTER = 300, 300, 300  # the chosen entries lie in three tiles
ROW = "UPDATE auditlog_auditentry SET {} WHERE id = (SELECT entry_id FROM auditlog_leaf WHERE index = 400)"
TILE = (
    "UPDATE auditlog_tile SET hashes = set_byte(hashes, {}, get_byte(hashes, {}) # 1)"
    " WHERE level = {} AND index = {}"
)


@pytest.fixture(scope="module")
def log(owned_world_transaction: None) -> list[AuditEntry]:
    """The chosen entries, of one tenant, between those of others; the owner has disabled the triggers."""
    empty_log()
    make_log(BEFORE)
    chosen = make_log(CHOSEN)
    make_log(AFTER)
    return chosen


@pytest.mark.parametrize(
    ("statements", "found", "missing"),
    [
        ([], ComparedEntries(CHOSEN), 0),
        ([ROW.format("description = 'x'")], ComparedEntries(CHOSEN - 1, changed=1), 0),
        ([ROW.format("actor_kind = 'person'")], ComparedEntries(CHOSEN - 1, changed=1), 0),
        ([ROW.format("created_at = created_at + interval '1 s'")], ComparedEntries(CHOSEN - 1, changed=1), 0),
        (
            ["UPDATE auditlog_leaf SET salts = '' WHERE index = 400"],
            ComparedEntries(CHOSEN - 1, changed=1),
            0,
        ),
        (
            ["DELETE FROM auditlog_auditentry WHERE id IN"
             " (SELECT entry_id FROM auditlog_leaf WHERE index IN (400, 599))"],
            ComparedEntries(CHOSEN - 2),
            2,
        ),
        (
            ["DELETE FROM auditlog_auditentry WHERE id IN"
             " (SELECT entry_id FROM auditlog_leaf WHERE index = 400)",
             "DELETE FROM auditlog_leaf WHERE index = 400"],
            ComparedEntries(CHOSEN - 1),
            1,
        ),
        ([TILE.format(144 * 32, 144 * 32, 0, 1)], ComparedEntries(CHOSEN - 1, changed=1, is_rooted=False), 0),
        ([TILE.format(0, 0, 0, 1)], ComparedEntries(CHOSEN, is_rooted=False), 0),
        ([TILE.format(32, 32, 1, 0)], ComparedEntries(CHOSEN, is_rooted=False), 0),
        (["DELETE FROM auditlog_tile WHERE level = 1"], ComparedEntries(CHOSEN, is_rooted=False), 0),
    ],
)  # fmt: skip
def test_comparison_counts_what_is_not_as_sealed(
    log: list[AuditEntry], statements: list[str], found: ComparedEntries, missing: int
) -> None:
    newest = latest_checkpoint()
    assert newest is not None
    for statement in statements:
        sql.execute(statement)

    assert compare(AuditEntry.objects.for_tenant(log[0].tenant_id), newest) == found
    around: dict[str, Any] = {"after": log[0].id, "before": new_id(), "size": newest.size}
    assert places_without_entry(**around, minimum_index=0) == missing
    assert places_without_entry(**around, minimum_index=BEFORE + CHOSEN) == 0


def test_entries_after_the_checkpoint_are_not_compared(log: list[AuditEntry]) -> None:
    newest = latest_checkpoint()
    assert newest is not None
    make_log(5, tenant_id=log[0].tenant_id)

    entries = AuditEntry.objects.for_tenant(log[0].tenant_id)

    assert compare(entries, newest) == ComparedEntries(CHOSEN)
    assert compare(entries, seal_and_sign()) == ComparedEntries(CHOSEN + 5)
