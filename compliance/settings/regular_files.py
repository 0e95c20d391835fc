"""Reading small files that an operator names, such as secrets."""

import errno
import stat
from pathlib import Path


def read_text(path: str | Path) -> str:
    """Return a file's UTF-8 text; a symbolic link is followed, as in a volume of Kubernetes.

    Raises: OSError, also for a pipe or a device, which could block its reader for ever; UnicodeDecodeError.
    """
    file = Path(path)
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "Not a regular file")
    return file.read_text(encoding="utf-8")
