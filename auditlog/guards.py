"""Check the triggers that keep the audit log append-only and queue its entries (migrations 0002 and 0008)."""

from typing import Final

from django.conf import settings

from compliance.stores import triggers

PREFIX: Final = "auditlog_"
TABLES: Final = ("auditentry", "leaf", "tile", "treehead", "signedhead")
NOTES: Final = "auditlog_signedhead"
"""The table to whose notes the service adds cosignatures; a trigger refuses any other change."""
ENTRIES: Final = "auditlog_auditentry"
ENQUEUE: Final = "auditlog_enqueue ON auditlog_auditentry"
"""Not on Citus, where `auditlog.services` queues entries: triggers of shards reach no other node."""
NO_CHANGE: Final = ("auditlog_no_change", "auditlog_no_truncate")
TRIGGERS: Final = {
    ENQUEUE,
    "auditlog_states_tree ON auditlog_signedhead",
    *(f"{trigger} ON {PREFIX}{table}" for table in TABLES for trigger in NO_CHANGE),
}
REMEDY: Final = (
    "find out who did it and run audit_verify; then, as the owner:"
    " ALTER TABLE <table> ENABLE ALWAYS TRIGGER <trigger>;"
    " a missing one is made anew as in migrations auditlog.0002 and 0008. On Citus a shard's is mended at its"
    " node, after SET citus.enable_manual_changes_to_shards = on; its name ends with the shard's number"
)


def not_in_force() -> set[str]:
    """Return those of `TRIGGERS` that are missing or disabled; on Citus also those of shards."""
    if not settings.DATABASE_CITUS:
        return triggers.not_in_force(TRIGGERS)
    on_shards = triggers.not_in_force_on_shards(ENTRIES, NO_CHANGE)
    return triggers.not_in_force(TRIGGERS - {ENQUEUE}) | on_shards


def are_in_force() -> bool:
    """Whether every trigger exists and is enabled."""
    return not not_in_force()
