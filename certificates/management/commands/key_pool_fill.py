"""`key_pool_fill`: generate keys in advance."""

from datetime import datetime
from typing import Any, ClassVar

from certificates.issuing import key_pool
from compliance.core.commands import ServiceCommand, between


class Command(ServiceCommand):
    help = "Fill the key pool of an environment up to KEY_POOL_SIZE, or to --size."
    takes_environment = True
    arguments: ClassVar = {
        "--size": {
            "type": between(0, 100_000),
            "metavar": "N",
            "help": "how many keys shall wait in the pool",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        made = key_pool.fill(now=now, size=options["size"])
        return {"environment": options["environment"], "made": made, "waiting": key_pool.waiting()}
