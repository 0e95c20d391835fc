"""Check the triggers that keep the audit log append-only and queue its entries (migrations 0002 and 0008)."""

from typing import Final

from compliance.stores import triggers

PREFIX: Final = "auditlog_"
TABLES: Final = ("auditentry", "leaf", "tile", "treehead", "signedhead")
NOTES: Final = "auditlog_signedhead"
"""The table to whose notes the service adds cosignatures; a trigger refuses any other change."""
TRIGGERS: Final = {
    "auditlog_enqueue ON auditlog_auditentry",
    "auditlog_states_tree ON auditlog_signedhead",
    *(f"auditlog_{what} ON {PREFIX}{table}" for table in TABLES for what in ("no_change", "no_truncate")),
}
REMEDY: Final = (
    "find out who did it and run audit_verify; then, as the owner:"
    " ALTER TABLE <table> ENABLE ALWAYS TRIGGER <trigger>;"
    " a missing one is made anew as in migrations auditlog.0002 and 0008"
)


def not_in_force() -> set[str]:
    """Return those of `TRIGGERS` that are missing or disabled."""
    return triggers.not_in_force(TRIGGERS)


def are_in_force() -> bool:
    """Whether every trigger exists and is enabled."""
    return not not_in_force()
