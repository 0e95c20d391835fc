"""`partition_restore`: make archived events a partition again."""

from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from events.archiving import restoring


class Command(ServiceCommand):
    help = (
        "Check an archive and make its events a partition again, for EVENT_RESTORED_DAYS or until"
        " partition_maintain --drop-restored."
    )
    takes_environment = True
    arguments: ClassVar = {
        "file": {"type": Path},
        "--force": {
            "action": "store_true",
            "help": "even if the audit log does not have the archive's digest",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        actor = Actor.system("partition_restore")
        made = restoring.restore(path=options["file"], is_forced=options["force"], actor=actor, now=now)
        return {"file": str(made.path), "rows": made.rows, "sha256": made.sha256}
