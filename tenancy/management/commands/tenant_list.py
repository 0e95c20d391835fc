"""`tenant_list`: list the tenants."""

from datetime import datetime
from typing import Any

from compliance.core.commands import ServiceCommand, fields
from tenancy.models import Tenant


class Command(ServiceCommand):
    help = "List the tenants, oldest first."

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        tenants = Tenant.objects.order_by("created_at", "id")
        return [fields(tenant, "id", "name", "created_at") for tenant in tenants]
