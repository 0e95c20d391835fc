"""Check the triggers that keep the audit log append-only and queue its entries."""

from typing import Final

PREFIX: Final = "auditlog_"
TABLES: Final = ("auditentry", "leaf", "tile", "treehead", "signedhead")
NOTES: Final = "auditlog_signedhead"
"""The table to whose notes the service adds cosignatures; a trigger refuses any other change."""
NO_CHANGE: Final = ("auditlog_no_change", "auditlog_no_truncate")
TRIGGERS: Final = {
    "auditlog_enqueue ON auditlog_auditentry",
    "auditlog_states_tree ON auditlog_signedhead",
    *(f"{trigger} ON {PREFIX}{table}" for table in TABLES for trigger in NO_CHANGE),
}
REMEDY: Final = (
    "find out who did it and run audit_verify; then, as the owner:"
    " ALTER TABLE <table> ENABLE ALWAYS TRIGGER <trigger>;"
    " a missing one is made anew as in the migration auditlog.0001_initial"
)
