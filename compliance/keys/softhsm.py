"""What SoftHSM's file store needs beside the standard: a second copy of each token's record.

At every login SoftHSM writes `token.object` (label, serial, the PINs' blobs) anew in place: it cuts the file
to nothing, then writes it (seen in 2.6.1). A process killed in between leaves an empty record, and with it
the token and all its keys are gone for every process that starts later. Nothing but the flags changes in a
record once the PINs are set, so the copy of an earlier start gives all of it back.
"""

import logging
import os
import re
from collections.abc import Iterator
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
"""Where SoftHSM looks when SOFTHSM2_CONF is not set; the system's path is fixed when it is built."""


def mend_tokens(module_path: str) -> None:
    """Give cut-off records back, and keep a copy of the whole ones; nothing for any other module.

    To be called under the start-up lock, which every login of this service holds: a record that is short
    then was left so by a process that is dead.
    """
    if "softhsm" not in Path(module_path).name:
        return
    for record in _records():
        try:
            _mend(record, record.with_name(COPY))
        except OSError as error:
            logger.warning("Record of SoftHSM token %s can't be kept: %s", record.parent.name, error)


def _records() -> Iterator[Path]:
    folder = _tokens_folder()
    return folder.glob(f"*/{RECORD}") if folder else iter(())


def _tokens_folder() -> Path | None:
    named = os.environ.get("SOFTHSM2_CONF")
    for path in map(Path, (named,) if named else CONFIGURATIONS):
        try:
            found = TOKENS_FOLDER.search(path.expanduser().read_text())
        except (OSError, ValueError):
            continue
        return Path(found[1]) if found else None
    return None


def _mend(record: Path, copy: Path) -> None:
    present = record.read_bytes()
    kept = copy.read_bytes() if copy.exists() else b""
    if len(present) < len(kept):
        _write(record, kept)
        logger.error(
            "Record of SoftHSM token %s, cut off by a process killed at its login, given back from the copy",
            record.parent.name,
        )
    elif present != kept:
        _write(copy, present)


def _write(path: Path, content: bytes) -> None:
    """Replace a file at once and durably, readable by its owner alone."""
    fresh = path.with_name(f"{COPY}.new")
    descriptor = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
