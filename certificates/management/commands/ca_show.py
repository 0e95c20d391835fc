"""`ca_show`: the CAs of an environment."""

from datetime import datetime
from typing import Any

from certificates.models import CertificateAuthority
from compliance.core.commands import ServiceCommand, fields

IDENTITY = ("role", "common_name", "serial_number", "key_uri")
LIFE = ("not_before", "not_after", "retired_at", "crl_number", "crl_url")


class Command(ServiceCommand):
    help = "List the CAs with their keys and revocation list numbers."
    takes_environment = True

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        return [
            {"state": authority.state_at(now).value, **fields(authority, *IDENTITY, *LIFE)}
            for authority in CertificateAuthority.objects.order_by("created_at", "id")
        ]
