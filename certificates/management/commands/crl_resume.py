"""`crl_resume`: continue the revocation lists after the database was restored to an earlier moment."""

from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from certificates.lists import resuming
from certificates.lists.resuming import KeptList, parse_list, recognized
from compliance.core.commands import ServiceCommand, fields
from compliance.core.errors import Invalid


class Command(ServiceCommand):
    help = (
        "After a restore to an earlier moment, with all other processes stopped: publish lists of every CA "
        "under numbers that cannot have been used before, and revoke again what lists that were kept show as "
        "revoked. Prints the serial numbers on those lists that the database does not know."
    )
    takes_environment = True
    requires_environment = True
    arguments: ClassVar = {
        "--list": {
            "action": "append",
            "default": [],
            "type": Path,
            "metavar": "FILE",
            "help": "a published list, the newest one that anyone kept; DER or PEM; may be repeated",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        kept = [_read(path) for path in options["list"]]
        resumed = resuming.resume(kept=kept, actor=Actor.system("crl_resume"), now=now)
        names = ("last_known", "number", "revoked_again", "unknown")
        return [fields(each, *names, authority="authority.common_name") for each in resumed]


def _read(path: Path) -> KeptList:
    try:
        found = recognized(parse_list(path.read_bytes()))
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}") from error
    if found is None:
        raise Invalid(f"{path}: no CA of this environment signed this list")
    return found
