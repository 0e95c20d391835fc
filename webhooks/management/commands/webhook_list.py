"""`webhook_list [--tenant ID]`: the webhooks of an environment, without their secrets."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any
from uuid import UUID

from compliance.commands import ServiceCommand
from webhooks.models import Webhook


class Command(ServiceCommand):
    help = "List webhooks and how their deliveries stand."
    takes_environment = True

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", type=UUID, metavar="ID", help="one tenant's only")

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        webhooks = Webhook.objects.existing().newest_first().with_counts()
        if options["tenant"]:
            webhooks = webhooks.for_tenant(options["tenant"])
        return [describe(webhook) for webhook in webhooks]


def describe(webhook: Any) -> dict[str, Any]:
    """A webhook and its counts as an operator sees it."""
    return {
        "id": str(webhook.id),
        "tenant": str(webhook.tenant_id),
        "url": webhook.url,
        "events": webhook.events,
        "active": webhook.active,
        "disabled_at": webhook.disabled_at,
        "pending": webhook.pending_count,
        "failed": webhook.failed_count,
        "pace": webhook.pace,
        "consecutive_failures": webhook.consecutive_failures,
        "created_at": webhook.created_at,
    }
