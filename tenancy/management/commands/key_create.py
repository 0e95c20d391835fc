"""`key_create --tenant ID --environment live|test`: create an API key, and print it once."""

from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand, between
from tenancy import services


class Command(ServiceCommand):
    help = "Create an API key; its secret is printed once and can't be read again."
    takes_environment = True
    requires_environment = True
    arguments: ClassVar = {
        "--tenant": {"type": UUID, "required": True, "metavar": "ID"},
        "--scopes": {"metavar": "A,B", "help": "comma-separated; all when omitted"},
        "--name": {"default": "", "help": "shown in the console"},
        "--expires-in-days": {"type": between(1, 3_650), "metavar": "N"},
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        days = options["expires_in_days"]
        issued = services.create_key(
            tenant=services.get_tenant(tenant_id=options["tenant"]),
            name=options["name"],
            scopes=options["scopes"].split(",") if options["scopes"] else None,
            expires_at=now + timedelta(days=days) if days else None,
            actor=Actor.system("key_create"),
            now=now,
        )
        return {
            "id": str(issued.row.id),
            "key": issued.secret,
            "tenant_id": str(issued.row.tenant_id),
            "environment": options["environment"],
            "name": issued.row.name,
            "scopes": issued.row.scopes,
            "expires_at": issued.row.expires_at,
        }
