"""`tenant_enforcement ID MODE --environment live|test`: enforce the risk threshold, or only observe."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from tenancy import services
from tenancy.models import Enforcement


class Command(ServiceCommand):
    help = "Have a tenant's agents stopped at the risk threshold (enforce), or only observed (observe)."
    takes_environment = True
    requires_environment = True
    arguments: ClassVar = {
        "tenant_id": {"type": UUID, "metavar": "ID"},
        "enforcement": {"choices": Enforcement.values},
        "--reason": {"required": True, "help": "kept in the audit log"},
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, str]:
        tenant = services.change_setting(
            name="enforcement",
            tenant_id=options["tenant_id"],
            value=Enforcement(options["enforcement"]),
            reason=options["reason"],
            actor=Actor.system("tenant_enforcement"),
            now=now,
        )
        return {"id": str(tenant.id), "name": tenant.name, "enforcement": tenant.enforcement}
