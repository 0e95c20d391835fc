"""`restore_check`: check an installation that was restored from backups, before it serves."""

from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from auditlog.tlog.lines import TlogError
from auditlog.tlog.notes import Note
from certificates.lists.resuming import parse_list
from compliance.core.commands import between
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from ops.management.commands.doctor import FindingsCommand
from ops.restoring.checks import KeptElsewhere, examine

SAMPLE = 50
FILES: dict[str, Any] = {"action": "append", "default": [], "type": Path, "metavar": "FILE"}


class Command(FindingsCommand):
    help = (
        "Check databases, audit log, keys, revocation lists and secrets after a restore, before the service "
        "starts; the databases are only read. Give what was kept elsewhere: it alone shows that something is "
        "missing at the end. Exit code 5 if a dependency is down, 6 if anything else is wrong."
    )

    arguments: ClassVar = {
        "--environment": {"choices": list(map(str, Environment)), "help": "check only this one"},
        "--against": {**FILES, "help": "a checkpoint that the audit log must contain; may be repeated"},
        "--list": {**FILES, "help": "a published revocation list, in DER or PEM; may be repeated"},
        "--sample": {
            "type": between(0, 100_000),
            "default": SAMPLE,
            "metavar": "N",
            "help": "agents' keys of each environment that sign (%(default)s)",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> None:
        chosen = [Environment(options["environment"])] if options["environment"] else list(Environment)
        try:
            notes = [(str(path), Note.parse(path.read_bytes())) for path in options["against"]]
            evidence = KeptElsewhere(notes, [parse_list(path.read_bytes()) for path in options["list"]])
        except OSError as error:
            raise Invalid(f"{error.filename}: {error.strerror}") from error
        except TlogError as error:
            raise Invalid(f"Not a checkpoint: {error}") from error
        findings = examine(chosen=chosen, evidence=evidence, sample=options["sample"], now=now)
        self._tell(findings, as_json=options["json"])
