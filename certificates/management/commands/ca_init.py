"""`ca_init`: make the CAs of an environment."""

from datetime import datetime
from typing import Any

from certificates import authorities
from compliance.core import environments
from compliance.core.commands import ServiceCommand, fields
from compliance.keys.registry import backend_for


class Command(ServiceCommand):
    help = (
        "Make root and issuing CA with their keys in the HSM, the first revocation lists, and, where "
        "PKCS11_SO_PIN is given, the token's missing shards; with AGENT_KEYS=wrapped, the wrapping key; "
        "repeatable."
    )
    takes_environment = True

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        shards = backend_for(environments.current()).provision()
        authority = authorities.bootstrap(now=now)
        return {
            "environment": options["environment"],
            **fields(authority, "serial_number", "not_after", issuing="common_name"),
            "shards": shards,
        }
