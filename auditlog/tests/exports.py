"""Exports of the log, and the verifier that outsiders run."""

import io
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from django.conf import settings

from auditlog.exporting.export import open_export
from auditlog.exporting.formats import FORMATS
from auditlog.filters import EntryFilters
from auditlog.sealing import keys
from compliance.core.clock import now

VERIFIER: Final = Path(settings.BASE_DIR) / "docs/verify_audit_log.py"
VERIFIED, ALTERED, CANNOT_TELL = range(3)


def _verifier() -> Any:
    spec = spec_from_file_location("verify_audit_log", VERIFIER)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_main: Final = _verifier().main


def vkey() -> str:
    return keys.verifier_keys(now=now())[0].encode()


def outsider(*arguments: object, log: str | None = None) -> tuple[int, str]:
    """Run the verifier of the documentation; return its status and what it says."""
    said, given = io.StringIO(), [str(VERIFIER), *map(str, arguments), "--log", log or vkey()]
    with redirect_stdout(said), redirect_stderr(said), patch.object(sys, "argv", given):
        return _main(), said.getvalue()


def verified(export: bytes, folder: Path, log: str | None = None) -> int:
    """Return the status that the verifier ends with for an export."""
    (folder / "export").write_bytes(export)
    return outsider("export", folder / "export", log=log)[0]


def exported(tenant_id: object, form: str = "jsonl", **filters: str) -> bytes:
    wanted = EntryFilters.read(filters)
    found = open_export(tenant_id=tenant_id, filters=wanted, form=FORMATS[form], now=now())  # type: ignore[arg-type]
    with closing(found):
        return b"".join(found)
