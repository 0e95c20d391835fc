"""`key_list --tenant ID`: a tenant's keys, without their secrets."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any
from uuid import UUID

from compliance import environments
from compliance.commands import ServiceCommand
from compliance.environments import Environment
from compliance.tenancy.models import ApiKey


class Command(ServiceCommand):
    help = "List a tenant's API keys of both environments, or of one."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", type=UUID, required=True, metavar="ID")
        parser.add_argument("--environment", choices=[environment.value for environment in Environment])

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        chosen = options["environment"]
        wanted = [Environment(chosen)] if chosen else list(Environment)
        rows: list[dict[str, Any]] = []
        for environment in wanted:
            with environments.use(environment):
                keys = ApiKey.objects.for_tenant(options["tenant"]).order_by("created_at", "id")
                rows.extend(describe(key, environment) for key in keys)
        return rows


def describe(key: ApiKey, environment: Environment) -> dict[str, Any]:
    """A key as people may see it."""
    return {
        "id": str(key.id),
        "environment": environment.value,
        "name": key.name,
        "hint": key.hint,
        "scopes": key.scopes,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
    }
