"""Check the triggers that refuse changes of audit entries (migration 0002)."""

from typing import Final

from compliance.stores import sql

TABLE: Final = "auditlog_auditentry"
TRIGGERS: Final = ("auditlog_no_change", "auditlog_no_truncate")
REMEDY: Final = (
    "find out who did it and compare the log with a backup; then, as the owner:"
    f" ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {', ENABLE ALWAYS TRIGGER '.join(TRIGGERS)};"
    " a missing one is made anew as in migration auditlog.0002"
)


def are_in_force() -> bool:
    """Whether both triggers exist and are enabled (`pg_trigger.tgenabled`)."""
    query = (
        "SELECT 1 FROM pg_trigger"
        " WHERE tgname = ANY(%s) AND tgenabled IN ('O', 'A') AND tgrelid = %s::regclass"
    )
    return len(sql.query(query, [list(TRIGGERS), TABLE])) == len(TRIGGERS)
