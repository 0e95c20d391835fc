"""`partition_archive`: archive partitions of the events table."""

from datetime import datetime
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from compliance.core.errors import Invalid, NotFound
from events import partitions
from events.archiving import archives, changes


class Command(ServiceCommand):
    help = (
        "Write archives of partitions of events into EVENT_ARCHIVE_DIR, and their digests into the audit log;"
        " one that is there is only checked. Drops nothing."
    )
    takes_environment = True
    arguments: ClassVar = {
        "partitions": {"nargs": "*", "help": "without any: those past EVENT_RETENTION_DAYS"},
    }

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        known = changes.listed()
        by_name = {partition.name: partition for partition in known}
        if unknown := [name for name in options["partitions"] if name not in by_name]:
            raise NotFound(f"There is no partition {unknown[0]}")
        chosen = [by_name[name] for name in options["partitions"]] or partitions.outlived(known, now)
        if unfinished := [one.name for one in chosen if one.end > now - partitions.SOON]:
            raise Invalid(f"{unfinished[0]} is not over yet")
        rows = []
        for partition in chosen:
            self.stderr.write(f"archiving {partition.name}")
            made = archives.ensure(partition=partition, actor=Actor.system("partition_archive"), now=now)
            shown = {"file": str(made.path), "rows": made.rows, "sha256": made.sha256}
            rows.append({"partition": partition.name, **shown})
        return rows
