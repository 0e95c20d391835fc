"""`webhook_list [--tenant ID]`: list the webhooks of an environment, without their secrets."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q

from compliance.core.commands import ServiceCommand
from webhooks.models import Webhook

COLUMNS = (
    *("id", "tenant", "url", "events", "active", "disabled_at"),
    *("pace", "consecutive_failures", "created_at"),
)
COUNTS = {
    status: Count("deliveries", filter=Q(deliveries__status=status)) for status in ("pending", "failed")
}


class Command(ServiceCommand):
    help = "List webhooks with the counts of their pending and failed deliveries."
    takes_environment = True

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", type=UUID, metavar="ID", help="only this tenant's")

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        webhooks: Any = Webhook.objects.existing().newest_first()
        if options["tenant"]:
            webhooks = webhooks.for_tenant(options["tenant"])
        return list(webhooks.values(*COLUMNS, **COUNTS))
