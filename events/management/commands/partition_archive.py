"""`partition_archive`: archive partitions of the events table."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from compliance.core.errors import Invalid, NotFound
from events import partitions
from events.archiving import archives
from events.listing.spans import Partition


class Command(ServiceCommand):
    help = (
        "Write archives of partitions of events into EVENT_ARCHIVE_DIR, and their digests into the audit log;"
        " one that is there is only checked. Drops nothing."
    )
    takes_environment = True

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("partitions", nargs="*", help="without any: those past EVENT_RETENTION_DAYS")

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        known = partitions.listed()
        chosen = [_named(name, known, now) for name in options["partitions"]]
        if not options["partitions"]:
            chosen = partitions.outlived(known, now)
        rows = []
        for partition in chosen:
            self.stderr.write(f"archiving {partition.name}")
            made = archives.ensure(partition=partition, actor=Actor.system("partition_archive"), now=now)
            shown = {"file": str(made.path), "rows": made.rows, "sha256": made.sha256}
            rows.append({"partition": partition.name, **shown})
        return rows


def _named(name: str, known: list[Partition], now: datetime) -> Partition:
    found = next((partition for partition in known if partition.name == name), None)
    if found is None:
        raise NotFound(f"There is no partition {name}")
    if found.end > now - partitions.SOON:
        raise Invalid(f"{name} is not over yet")
    return found
