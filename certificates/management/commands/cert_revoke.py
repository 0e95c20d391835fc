"""`cert_revoke`: revoke a certificate."""

import logging
from datetime import datetime
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from certificates import services
from certificates.lists import publication
from certificates.models import Certificate
from compliance.core.commands import ServiceCommand, fields
from compliance.core.errors import Invalid, Unavailable

log = logging.getLogger(__name__)

MAX_REASON = 500


class Command(ServiceCommand):
    help = "Revoke a certificate and publish the lists that tell it; there is no way back."
    takes_environment = True
    arguments: ClassVar = {
        "--serial": {"required": True, "help": "hex in any case, with or without colons"},
        "--reason": {"required": True, "help": "keyCompromise: …, superseded, and so on"},
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        if not 1 <= len(options["reason"]) <= MAX_REASON:
            raise Invalid(f"--reason takes 1 to {MAX_REASON} characters")
        found = Certificate.objects.with_serial_text(options["serial"])
        actor = Actor.system("cert_revoke")
        revoked = services.revoke(
            tenant_id=found.tenant_id, certificate_id=found.id, reason=options["reason"], actor=actor, now=now
        )
        renamed = {"reason": "revocation_reason", "code": "revocation_code"}
        shown = fields(revoked, "serial_number", "status", "revoked_at", **renamed)
        published = None  # also while another process makes the list
        try:
            published = publication.publish(authority_id=revoked.authority_id, actor=actor, now=now)
        except Unavailable as error:
            log.warning("revoked, but the list is not published yet: %s", error.message)
        return {**shown, "crl_number": published.number if published else None}
