"""`crl_generate`: publish revocation lists now."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from auditlog.vocabulary import Actor
from certificates import services
from certificates.models import CertificateAuthority
from compliance.commands import ServiceCommand


class Command(ServiceCommand):
    help = "Publish a new revocation list of every CA that still signs them, or only the lists that are due."
    takes_environment = True

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--if-due", action="store_true", help="leave out lists that are up to date")

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        published = [
            services.publish(
                authority_id=authority.id,
                actor=Actor.system("crl_generate"),
                now=now,
                force=not options["if_due"],
            )
            for authority in CertificateAuthority.objects.publishing(now)
        ]
        return [
            {
                "authority": item.authority.common_name,
                "number": item.number,
                "entries": item.entry_count,
                "this_update": item.this_update,
                "next_update": item.next_update,
            }
            for item in published
            if item is not None
        ]
