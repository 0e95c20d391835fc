"""Exports of the log, and the two that verify them: the service and the outsiders' verifier."""

import io
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

from django.conf import settings

from auditlog.exporting.export import open_export
from auditlog.exporting.formats import FORMATS
from auditlog.filters import EntryFilters
from auditlog.sealing import keys
from auditlog.tlog.notes import VerifierKey
from auditlog.verifying.export_file import verify_export
from auditlog.verifying.findings import LogOutcome
from auditlog.verifying.service import Demands
from compliance.core.clock import now

VERIFIER: Final = Path(settings.BASE_DIR) / "docs/verify_audit_log.py"


def vkey() -> str:
    return keys.verifier_keys(now=now())[0].encode()


def outsider(*arguments: object, log: str | None = None) -> tuple[int, str]:
    """Run the verifier of the documentation; return its status and what it says."""
    command = [sys.executable, str(VERIFIER), *map(str, arguments), "--log", log or vkey()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def insider(export: bytes, log: str | None = None) -> LogOutcome:
    demands = Demands([VerifierKey.parse(log or vkey())])
    return verify_export(io.BytesIO(export), name="export", demands=demands).outcome


def exported(tenant_id: object, form: str = "jsonl", **filters: str) -> bytes:
    wanted = EntryFilters.read(filters)
    found = open_export(tenant_id=tenant_id, filters=wanted, form=FORMATS[form], now=now())  # type: ignore[arg-type]
    with closing(found):
        return b"".join(found)
