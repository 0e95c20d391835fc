"""`crl_check`: check the published lists against the database."""

from datetime import datetime
from typing import Any

from certificates.lists.list_audit import findings
from certificates.models import CertificateAuthority
from compliance.core.commands import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Read every published list again and compare its signature, number, dates, scope and entries with "
        "the database; exit 6 when something is wrong."
    )
    takes_environment = True
    is_check = True

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        return [
            {"authority": authority.common_name, "findings": findings(authority, now)}
            for authority in CertificateAuthority.objects.publishing(now).order_by("created_at", "id")
        ]
