"""The triggers that refuse changes of audit entries (migration 0002), and whether they are in force."""

from typing import Final

from compliance import sql

TABLE: Final = "auditlog_auditentry"
TRIGGERS: Final = ("auditlog_no_change", "auditlog_no_truncate")
REMEDY: Final = (
    "find out who did it and compare the log with a backup; then, as the owner:"
    f" ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {TRIGGERS[0]}, ENABLE ALWAYS TRIGGER"
    f" {TRIGGERS[1]}; a missing one is made anew as in migration auditlog.0002"
)


def are_in_force() -> bool:
    """Whether both triggers exist and are enabled (`pg_trigger.tgenabled`)."""
    found = sql.query(
        "SELECT count(*) FROM pg_trigger WHERE tgname = ANY(%s) AND tgenabled IN ('O', 'A')"
        " AND tgrelid = %s::regclass",
        [list(TRIGGERS), TABLE],
    )
    return bool(found[0][0] == len(TRIGGERS))
