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
from auditlog.tlog.errors import TlogError
from auditlog.tlog.notes import Note
from compliance.core import environments
from compliance.core.errors import Invalid

LATE: Final = timedelta(days=8)
_UNREADABLE: Final = "AUDIT_VERIFIED_FILE cannot be read"


@dataclass(frozen=True)
class LastVerified:
    """The checkpoint, and when the log was last found to contain it and all before it."""

    checkpoint: Checkpoint
    verified_at: datetime


def read() -> LastVerified | None:
    """Return what was verified last in the current environment, if anything. Raises: Invalid."""
    found = _contents().get(environments.current())
    if found is None:
        return None
    try:
        checkpoint = Checkpoint.parse(Note.parse(found["note"]).text)
        return LastVerified(checkpoint, datetime.fromisoformat(found["verified_at"]))
    except (TlogError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise Invalid(f"{_UNREADABLE}: {error}") from error


def problem(now: datetime) -> str:
    """Return why the last verification no longer reassures; empty if it does, or if the log is new.

    Cheap: reads the few tiles that make the root of the tree as it was then. Raises: Invalid.
    """
    last = read()
    if last is None:
        first = SignedHead.objects.order_by("size").first()
        is_late = first is not None and first.signed_at < now - LATE
        return "audit_verify has verified nothing yet" if is_late else ""
    if not _begins_with(last.checkpoint):
        return f"the log no longer begins with the {last.checkpoint.size} entries that were verified last"
    is_late = last.verified_at < now - LATE
    return f"last verified on {last.verified_at:%Y-%m-%d %H:%M}" if is_late else ""


def keep(note: str, *, now: datetime) -> None:
    """Remember a verified checkpoint of the current environment; without AUDIT_VERIFIED_FILE, do nothing."""
    if not settings.AUDIT_VERIFIED_FILE:
        return
    entry = {"note": note, "verified_at": now.isoformat()}
    contents = {**_contents(), environments.current().value: entry}
    target = Path(settings.AUDIT_VERIFIED_FILE)
    written = target.with_name(f"{target.name}.{os.getpid()}")
    written.write_text(json.dumps(contents, indent=1))
    # Never half a file, even if the machine stops.
    written.replace(target)


def _begins_with(checkpoint: Checkpoint) -> bool:
    try:
        return StoredTiles().root(checkpoint.size) == checkpoint.root
    except TlogError:
        return False


def _contents() -> dict[str, Any]:
    if not settings.AUDIT_VERIFIED_FILE:
        return {}
    try:
        found = json.loads(Path(settings.AUDIT_VERIFIED_FILE).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Invalid(f"{_UNREADABLE}: {error}") from error
    if not isinstance(found, dict):
        raise Invalid(f"{_UNREADABLE}: it is not an object")
    return found
