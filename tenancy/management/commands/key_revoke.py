"""`key_revoke ID --environment live|test`: revoke an API key."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from tenancy import services


class Command(ServiceCommand):
    help = "Revoke an API key; requests with it are refused from now on."
    takes_environment = True
    requires_environment = True
    arguments: ClassVar = {
        "key_id": {"type": UUID, "metavar": "ID"},
        "--reason": {"help": "kept in the audit log"},
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        row = services.revoke_key(
            key_id=options["key_id"], reason=options["reason"], actor=Actor.system("key_revoke"), now=now
        )
        return {"id": str(row.id), "revoked_at": row.revoked_at}
