"""Which account PostgreSQL runs under, for it refuses to run as root.

Root maps itself to `nobody` in a user namespace of its own: nothing changes hands on disk. Where
namespaces are blocked (many containers), the server runs as the real `nobody`. An ordinary user
runs it as himself. The rule for data that exists: whoever owns it runs it.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .console import StepFailed

NOBODY = 65534


@dataclass(frozen=True)
class Account:
    """How to run a program: `prefix` comes before the command, `uid` is the user to become (None: stay)."""

    prefix: tuple[str, ...] = ()
    uid: int | None = None

    def owner(self) -> int:
        """The user who must own files that the program calls its own."""
        return os.geteuid() if self.uid is None else self.uid

    def can_run(self, program: Path) -> bool:
        """Whether the account may enter the folder or run the program at `program`."""
        return self.run(["test", "-x", str(program)], cwd=Path("/")).returncode == 0

    def run(self, command: list[str], *, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run to the end, output captured, no standard input."""
        ids: dict[str, object] = (
            {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        )
        return subprocess.run(  # type: ignore[call-overload,no-any-return]
            [*self.prefix, *command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **ids,
        )


def account_for(data: Path) -> Account:
    """The account for the data in `data`, or for data still to be made there."""
    uid = os.geteuid()
    owner = data.stat().st_uid if data.exists() else uid
    if uid == 0 and owner != 0:
        return Account(uid=owner)
    if uid != owner:
        raise StepFailed(
            f"{data} belongs to user {owner}, not to you",
            hint="set LOCAL_DIR to a folder of your own, or remove it as its owner",
        )
    if uid != 0 and has_name(uid):
        return Account()
    mapped = namespace_prefix()
    if mapped is not None:
        return Account(prefix=mapped)
    if uid == 0 and not data.exists():
        return Account(uid=NOBODY)
    raise StepFailed(
        f"PostgreSQL can't run as user {uid} here: user namespaces are blocked",
        hint="allow user namespaces, run as a user listed in /etc/passwd, "
        "or set DATABASE_URL and TEST_DATABASE_URL",
    )


def has_name(uid: int) -> bool:
    """Whether the user database knows `uid`; initdb insists on it."""
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def namespace_prefix() -> tuple[str, ...] | None:
    """The command prefix that maps us to `nobody`, or None where that is blocked."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    prefix = (unshare, "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}")
    tried = subprocess.run(
        [*prefix, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd="/"
    )
    return prefix if tried.returncode == 0 else None
