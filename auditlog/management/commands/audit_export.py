"""`audit_export`: write a tenant's sealed audit entries with their proofs to a file."""

import sys
from contextlib import closing, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from auditlog.exporting.export import open_export
from auditlog.exporting.formats import FORMATS
from auditlog.filters import NAMES, EntryFilters
from compliance.core.commands import ServiceCommand
from compliance.core.errors import Invalid
from compliance.core.identifiers import parse_id


class Command(ServiceCommand):
    help = (
        "Export a tenant's sealed audit entries with the proof of each; docs/verify_audit_log.py verifies "
        "the file. Entries not sealed yet are left out."
    )
    takes_environment = True

    arguments: ClassVar = {
        "--tenant": {"required": True, "metavar": "ID"},
        "--format": {"choices": list(FORMATS), "default": "jsonl"},
        "--output": {"type": Path, "metavar": "FILE", "help": "instead of standard output"},
        **{f"--{name.replace('_', '-')}": {"help": f"as {name} of GET /v1/audit-log"} for name in NAMES},
    }

    def run(self, *, now: datetime, **options: Any) -> None:
        tenant_id = parse_id(options["tenant"])
        if tenant_id is None:
            raise Invalid("--tenant must be a UUID")
        filters = EntryFilters.read({name: options[name] for name in NAMES if options[name] is not None})
        export = open_export(tenant_id=tenant_id, filters=filters, form=FORMATS[options["format"]], now=now)
        path: Path | None = options["output"]
        try:
            with closing(export), path.open("wb") if path else nullcontext(sys.stdout.buffer) as out:
                out.writelines(export)
        except OSError as error:
            raise Invalid(f"The export cannot be written: {error}") from error
