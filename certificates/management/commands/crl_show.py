"""`crl_show`: the published revocation lists."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from certificates.models import CertificateAuthority, RevocationList
from compliance.commands import ServiceCommand


class Command(ServiceCommand):
    help = "Show the newest list of each scope (full, delta, shards) of every CA that signs lists."
    takes_environment = True

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--scope", help="only this one: full, delta, shard-0 …")

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        lists = RevocationList.objects.filter(authority__in=CertificateAuthority.objects.publishing(now))
        if options["scope"]:
            lists = lists.filter(scope=options["scope"])
        newest = lists.select_related("authority").order_by("authority_id", "scope", "-number")
        return [
            {
                "authority": found.authority.common_name,
                "serial_number": found.authority.serial_number,
                "scope": found.scope,
                "number": found.number,
                "base_number": found.base_number,
                "entries": found.entry_count,
                "octets": found.size,
                "this_update": found.this_update,
                "next_update": found.next_update,
                "is_current": found.next_update > now,
            }
            for found in newest.distinct("authority_id", "scope")
        ]
