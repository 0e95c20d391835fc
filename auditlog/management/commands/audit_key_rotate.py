"""`audit_key_rotate [--overlap-days N]`: the next key that signs the audit log's checkpoints."""

from datetime import datetime, timedelta
from typing import Any, ClassVar

from auditlog.management.commands.audit_key_list import describe
from auditlog.sealing import keys
from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Make the next key of the audit log. It signs at once, and the old one with it until the overlap "
        "ends. Makes the first key where there is none."
    )
    takes_environment = True
    arguments: ClassVar = {
        "--overlap-days": {
            "type": int,
            "choices": range(366),
            "default": keys.OVERLAP.days,
            "metavar": "N",
            "help": "how long the old key signs, too (%(default)s); 0 if it is compromised",
        },
        "--origin": {
            "metavar": "NAME",
            "help": "continue the log under this name, without an overlap: for a log that has lost entries",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        actor, overlap = Actor.system("command:audit_key_rotate"), timedelta(days=options["overlap_days"])
        if options["origin"]:
            return describe(keys.begin_anew(options["origin"], actor=actor, now=now))
        return describe(keys.rotate(actor=actor, now=now, overlap=overlap))
