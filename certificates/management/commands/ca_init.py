"""`ca_init`: make the CAs of an environment."""

from datetime import datetime
from typing import Any

from certificates import services
from compliance.commands import ServiceCommand


class Command(ServiceCommand):
    help = "Make root and issuing CA with their keys in the HSM, and the first revocation lists; repeatable."
    takes_environment = True

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        authority = services.bootstrap(now=now)
        return {
            "environment": options["environment"],
            "issuing": authority.common_name,
            "serial_number": authority.serial_number,
            "not_after": authority.not_after,
        }
