"""`wrapping_key_rotate`: replace the key that wraps agents' keys."""

from datetime import datetime
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from certificates.issuing import wrapped_keys
from compliance.core.commands import EXIT_FINDINGS, ServiceCommand

ACTOR = Actor.system("command:wrapping_key_rotate")


class Command(ServiceCommand):
    help = (
        "Put a new wrapping key into service and wrap every agent's key anew, while the service signs. "
        "Where it was interrupted, --resume wraps the rest."
    )
    takes_environment = True
    arguments: ClassVar = {
        "--resume": {"action": "store_true", "help": "make no new key; wrap what waits"},
        "--destroy-retired": {
            "action": "store_true",
            "help": "destroy keys retired ten minutes ago that wrap nothing; older backups lose agents' keys",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        if not options["resume"]:
            wrapped_keys.rotate(actor=ACTOR, now=now)
        made = wrapped_keys.wrap_waiting()
        destroyed = wrapped_keys.destroy_retired(actor=ACTOR, now=now) if options["destroy_retired"] else 0
        if left := wrapped_keys.waiting().count():
            self._fail(f"{left} keys could not be wrapped: see the log", EXIT_FINDINGS)
        return {
            "environment": options["environment"],
            "wrapping_key": wrapped_keys.current().uri,
            "wrapped": made,
            "destroyed": destroyed,
        }
