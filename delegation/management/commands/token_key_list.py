"""`token_key_list`: the keys that sign, signed or will sign delegation tokens."""

from datetime import datetime
from typing import Any

from compliance.commands import ServiceCommand
from delegation.models import TokenKey


class Command(ServiceCommand):
    help = "List the token keys of an environment, newest first."
    takes_environment = True

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        return [describe(key) for key in TokenKey.objects.order_by("-published_at", "-id")]


def describe(key: TokenKey) -> dict[str, Any]:
    """A key as people may see it."""
    return {
        "kid": key.kid,
        "status": str(key.status),
        "published_at": key.published_at,
        "active_from": key.active_from,
        "retired_at": key.retired_at,
        "destroyed_at": key.destroyed_at,
        "uri": key.uri,
    }
