"""`key_list --tenant ID`: list a tenant's API keys, without their secrets."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any
from uuid import UUID

from compliance.core import environments
from compliance.core.commands import ServiceCommand
from compliance.core.environments import Environment
from compliance.tenancy.models import ApiKey

SHOWN = ("name", "hint", "scopes", "created_at", "last_used_at", "expires_at", "revoked_at")


class Command(ServiceCommand):
    help = "List a tenant's API keys of both environments, or of one."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", type=UUID, required=True, metavar="ID")
        parser.add_argument("--environment", choices=[environment.value for environment in Environment])

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        chosen = [Environment(options["environment"])] if options["environment"] else list(Environment)
        rows: list[dict[str, Any]] = []
        for environment in chosen:
            with environments.use(environment):
                for key in ApiKey.objects.for_tenant(options["tenant"]).order_by("created_at", "id"):
                    shown = {name: getattr(key, name) for name in SHOWN}
                    rows.append({"id": str(key.id), "environment": environment.value, **shown})
        return rows
