"""`crl_generate`: publish revocation lists now."""

from datetime import datetime
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from certificates.lists import publication
from certificates.models import CertificateAuthority
from compliance.core.commands import ServiceCommand, fields


class Command(ServiceCommand):
    help = "Publish a new revocation list of every CA that still signs them, or only the lists that are due."
    takes_environment = True
    arguments: ClassVar = {
        "--if-due": {"action": "store_true", "help": "leave out lists that are up to date"},
    }

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        published = [
            publication.publish(
                authority_id=authority.id,
                actor=Actor.system("crl_generate"),
                now=now,
                force=not options["if_due"],
            )
            for authority in CertificateAuthority.objects.publishing(now)
        ]
        renamed = {"authority": "authority.common_name", "entries": "entry_count"}
        names = ("number", "this_update", "next_update")
        return [fields(item, *names, **renamed) for item in published if item is not None]
