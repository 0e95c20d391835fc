"""`cert_lint`: check issued certificates again."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from certificates.inspection import findings
from certificates.models import Certificate
from compliance.core.commands import CheckCommand


class Command(CheckCommand):
    help = (
        "Judge one certificate, or every active one, against the profile, its CA and its row; exit 6 when "
        "something is wrong."
    )
    takes_environment = True

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--serial", help="only this one")

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        if options["serial"]:
            found = Certificate.objects.with_serial_text(options["serial"])
            return [{"serial_number": found.serial_number, "findings": findings(found)}]
        active = Certificate.objects.active(now).select_related("authority").order_by("issued_at", "id")
        judged = ((row.serial_number, findings(row)) for row in active.iterator(chunk_size=1_000))
        return [{"serial_number": serial, "findings": found} for serial, found in judged if found]
