"""`tenant_create --name NAME`: create a tenant in both environments."""

from datetime import datetime
from typing import Any, ClassVar

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from tenancy import services


class Command(ServiceCommand):
    help = "Create a tenant in both environments."
    arguments: ClassVar = {
        "--name": {"required": True},
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, str]:
        actor = Actor.system("tenant_create")
        tenant = services.create_tenant(name=options["name"], actor=actor, now=now)
        return {"id": str(tenant.id), "name": tenant.name}
