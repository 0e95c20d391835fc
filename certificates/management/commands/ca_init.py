"""`ca_init`: make the CAs of an environment."""

from datetime import datetime
from typing import Any

from certificates import services
from compliance import environments
from compliance.commands import ServiceCommand
from compliance.keys import backend_for, make_shards


class Command(ServiceCommand):
    help = (
        "Make root and issuing CA with their keys in the HSM, the first revocation lists, and, where "
        "PKCS11_SO_PIN is given, the token's missing shards; repeatable."
    )
    takes_environment = True

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        make_shards(environments.current())
        authority = services.bootstrap(now=now)
        return {
            "environment": options["environment"],
            "issuing": authority.common_name,
            "serial_number": authority.serial_number,
            "not_after": authority.not_after,
            "shards": sum(backend_for(environments.current()).shards().values()),
        }
