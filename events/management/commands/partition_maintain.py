"""`partition_maintain`: make the events table's next partitions, archive and drop outlived ones."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from compliance.core.commands import EXIT_FINDINGS, ServiceCommand
from events import partitions


class Command(ServiceCommand):
    help = (
        "Make the partitions of events ahead, archive and drop those past EVENT_RETENTION_DAYS; repeatable."
        " Exits with 6 when something had to be left for the next run, or the default partition holds rows."
    )
    takes_environment = True
    arguments: ClassVar = {
        "--dry-run": {"action": "store_true", "help": "only tell what would be done"},
        "--drop-restored": {
            "action": "store_true",
            "help": "drop restored partitions before EVENT_RESTORED_DAYS",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> None:
        done = partitions.maintain(
            actor=Actor.system("partition_maintain"),
            now=now,
            dry_run=options["dry_run"],
            drop_restored=options["drop_restored"],
        )
        self._show({"environment": options["environment"], **asdict(done)}, as_json=options["json"])
        if not done.is_complete:
            self._fail(
                f"{len(done.postponed)} partitions postponed, {len(done.unarchived)} not archived,"
                f" {done.default_rows} rows in the default one",
                EXIT_FINDINGS,
            )
