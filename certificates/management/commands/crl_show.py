"""`crl_show`: the published revocation lists."""

from datetime import datetime
from typing import Any

from django.db.models.functions import Length

from certificates.models import CertificateAuthority, RevocationList
from compliance.core.commands import ServiceCommand, fields

NAMES = ("scope", "number", "base_number", "this_update", "next_update")
CA = {"authority": "authority.common_name", "serial_number": "authority.serial_number"}
RENAMED = {**CA, "entries": "entry_count", "octets": "size"}


class Command(ServiceCommand):
    help = "Show the newest list of each scope (full, delta, shards) of every CA that signs lists."
    takes_environment = True

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        lists = RevocationList.objects.filter(authority__in=CertificateAuthority.objects.publishing(now))
        # `shard-2` before `shard-10`
        newest = lists.annotate(length=Length("scope")).order_by("authority_id", "length", "scope", "-number")
        return [
            {**fields(found, *NAMES, **RENAMED), "is_current": found.next_update > now}
            for found in newest.select_related("authority").distinct("authority_id", "length", "scope")
        ]
