"""`ca_rotate`: replace the issuing CA."""

from datetime import datetime
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from certificates import authorities
from compliance.core.commands import ServiceCommand, fields


class Command(ServiceCommand):
    help = (
        "Make a new issuing CA that issues from now on; the old one goes on signing its revocation lists "
        "until its last certificate has expired. Run again within a day, it refuses (exit 4)."
    )
    takes_environment = True
    arguments: ClassVar = {
        "--force": {"action": "store_true", "help": "even if the CA in service is of today"},
        "--root": {"action": "store_true", "help": "under a new root, for verifiers to learn"},
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        rotation = authorities.rotate(
            actor=Actor.system("ca_rotate"), now=now, force=options["force"], with_root=options["root"]
        )
        made = fields(rotation.successor, "serial_number", "not_after", issuing="common_name")
        return {"environment": options["environment"], **made, "retired": rotation.predecessor.serial_number}
