"""`key_list [--tenant ID]`: list API keys, without their secrets."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from compliance.core import environments
from compliance.core.commands import ServiceCommand, fields
from compliance.core.environments import Environment
from tenancy.models import ApiKey

SHOWN = ("name", "hint", "scopes", "created_at", "last_used_at", "expires_at", "revoked_at")


class Command(ServiceCommand):
    help = "List the API keys of all tenants or of one, in both environments or in one."
    arguments: ClassVar = {
        "--tenant": {"type": UUID, "metavar": "ID", "help": "all tenants when omitted"},
        "--environment": {"choices": [environment.value for environment in Environment]},
    }

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        chosen = [Environment(options["environment"])] if options["environment"] else list(Environment)
        rows: list[dict[str, Any]] = []
        for environment in chosen:
            with environments.use(environment):
                keys = ApiKey.objects.order_by("tenant_id", "created_at", "id")
                if options["tenant"]:
                    keys = keys.for_tenant(options["tenant"])
                for key in keys:
                    shown = fields(key, "id", "tenant_id") | {"environment": environment.value}
                    rows.append(shown | fields(key, *SHOWN))
        return rows
