"""Repair of SoftHSM tokens whose record a killed process left empty.

At every login SoftHSM 2.6 truncates and rewrites `token.object`; a process killed in between leaves it empty,
and no later one finds the token. Only flags change once the PINs are set, so an older copy restores it.
"""

import logging
import os
import re
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

RECORD: Final = "token.object"
COPY: Final = "token.object.kept"
TOKENS_FOLDER: Final = re.compile(r"^\s*directories\.tokendir\s*=\s*([^#\n]*[^#\s])", re.MULTILINE)
CONFIGURATIONS: Final = (
    "~/.config/softhsm2/softhsm2.conf",
    "/etc/softhsm/softhsm2.conf",
    "/etc/softhsm2.conf",
)
"""Where SoftHSM looks without SOFTHSM2_CONF; the path under /etc depends on its build."""


def mend_tokens(module_path: str) -> None:
    """Restore truncated records and copy whole ones, if the module is SoftHSM. Needs the start-up lock."""
    # Every login holds it, so only a dead process leaves a truncated record.
    if "softhsm" not in Path(module_path).name:
        return
    for record in _records():
        copy, token = record.with_name(COPY), record.parent.name
        try:
            present = record.read_bytes()
            kept = copy.read_bytes() if copy.exists() else b""
            if len(present) < len(kept):
                _write(record, kept)
                logger.error("Restored the record of SoftHSM token %s, truncated by a killed process", token)
            elif present != kept:
                _write(copy, present)
        except OSError as error:
            logger.warning("Record of SoftHSM token %s cannot be copied: %s", token, error)


def _records() -> list[Path]:
    named = os.environ.get("SOFTHSM2_CONF")
    for path in map(Path, (named,) if named else CONFIGURATIONS):
        try:
            found = TOKENS_FOLDER.search(path.expanduser().read_text())
        except (OSError, ValueError):
            continue
        return list(Path(found[1]).glob(f"*/{RECORD}")) if found else []
    return []


def _write(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably; only its owner can read it."""
    fresh = path.with_name(f"{COPY}.new")
    descriptor = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
