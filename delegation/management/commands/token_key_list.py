"""`token_key_list`: the keys that sign, signed or will sign delegation tokens."""

from datetime import datetime
from typing import Any

from compliance.core.commands import ServiceCommand, fields
from delegation.models import TokenKey


class Command(ServiceCommand):
    help = "List the token keys of an environment, newest first."
    takes_environment = True

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        return [describe(key) for key in TokenKey.objects.order_by("-published_at", "-id")]


def describe(key: TokenKey) -> dict[str, Any]:
    return fields(key, "kid", "status", "published_at", "active_from", "retired_at", "destroyed_at", "uri")
