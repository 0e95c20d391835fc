"""The checkpoint of each environment that was verified last, in a file outside of the databases.

A superuser of a database can rewrite its tables, a record of what was verified among them, and its log with
them. The file can be kept where no database role writes, on the machine that verifies.
"""

import json
import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from auditlog.models import SignedHead
from auditlog.sealing.tree import StoredTiles
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.notes import Note
from compliance.core import environments
from compliance.core.errors import Invalid

LATE: Final = timedelta(days=8)


@dataclass(frozen=True)
class LastVerified:
    """The checkpoint, and when the log was last found to contain it and all before it."""

    checkpoint: Checkpoint
    verified_at: datetime


def read() -> LastVerified | None:
    """Return what was verified last in the current environment, if anything. Raises: Invalid."""
    found = _contents().get(environments.current())
    if found is None or (isinstance(found, dict) and "failure" in found and "note" not in found):
        return None
    try:
        checkpoint = Checkpoint.parse(Note.parse(found["note"]).text)
        return LastVerified(checkpoint, datetime.fromisoformat(found["verified_at"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Invalid(f"AUDIT_VERIFIED_FILE cannot be read: {error}") from error


def problem(now: datetime) -> str:
    """Return why the last verification does not reassure. Cheap: few tiles are read. Raises: Invalid."""
    if found := failure():
        return found
    last = read()
    if last is None:
        first = SignedHead.objects.order_by("size").first()
        is_late = first is not None and first.signed_at < now - LATE
        return "audit_verify has verified nothing yet" if is_late else ""
    if StoredTiles().root_or_nothing(last.checkpoint.size) != last.checkpoint.root:
        return f"the log no longer begins with the {last.checkpoint.size} entries that were verified last"
    is_late = last.verified_at < now - LATE
    return f"last verified on {last.verified_at:%Y-%m-%d %H:%M}" if is_late else ""


def failure() -> str:
    """Return what the last verification found wrong; empty if it found nothing. Raises: Invalid."""
    return str((_contents().get(environments.current()) or {}).get("failure", ""))


def keep(note: str | None, *, failure: str = "", now: datetime) -> None:
    """Remember how the current environment's log verified; without AUDIT_VERIFIED_FILE, do nothing.

    `note` is its newest checkpoint, if it verified and has one. A `failure` is kept beside what was verified
    before, until the log verifies again.
    """
    if not settings.AUDIT_VERIFIED_FILE:
        return
    contents = _contents()
    kept = {"note": note, "verified_at": now.isoformat()} if note else {"failure": ""}
    if failure:
        before = contents.get(environments.current()) or {}
        kept = {**before, "failure": f"audit_verify, {now:%Y-%m-%d %H:%M} UTC: {failure}"}
    target = Path(settings.AUDIT_VERIFIED_FILE)
    written = target.with_name(f"{target.name}.{os.getpid()}")
    written.write_text(json.dumps({**contents, environments.current().value: kept}, indent=1))
    # Never half a file, even if the machine stops.
    written.replace(target)


def _contents() -> dict[str, Any]:
    path = Path(settings.AUDIT_VERIFIED_FILE)
    try:
        found = json.loads(path.read_bytes()) if settings.AUDIT_VERIFIED_FILE and path.exists() else {}
    except (OSError, ValueError) as error:
        raise Invalid(f"AUDIT_VERIFIED_FILE cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise Invalid("AUDIT_VERIFIED_FILE is not an object")
    return found
