"""The folder that events wait in: nobody but its user may write there."""

import os
import stat
from contextlib import suppress
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def secure(folder: Path) -> None:
    """Make a folder for its user only. Raises: PermissionError if others may have put events in it."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_above(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not stat.S_ISDIR(folder.lstat().st_mode):
        raise PermissionError(f"{folder}: a link, or no folder")
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(opened)
        if found.st_uid != os.geteuid():
            raise PermissionError(f"{folder}: belongs to another user")
        if found.st_mode & OTHERS_WRITE:
            raise PermissionError(f"{folder}: others may have put events in it: look, then chmod 700")
        os.fchmod(opened, 0o700)
    finally:
        os.close(opened)


def _check_above(folder: Path) -> None:
    """Raise PermissionError unless only this user and root can rename what is in the folder."""
    found, trusted = folder.stat(), (0, os.geteuid())
    if found.st_uid not in trusted or folder.lstat().st_uid not in trusted:
        raise PermissionError(f"{folder}: belongs to another user")
    # In a sticky folder, as /tmp, nobody renames what is another's.
    if found.st_mode & OTHERS_WRITE and not found.st_mode & stat.S_ISVTX:
        raise PermissionError(f"{folder}: others may write in it: chmod go-w")
