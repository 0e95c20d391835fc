"""`webhook_list [--tenant ID]`: list the webhooks of an environment, without their secrets."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce

from compliance.core.commands import ServiceCommand
from webhooks.models import Delivery, Webhook

COLUMNS = (
    *("id", "tenant", "url", "events", "active", "disabled_at"),
    *("pace", "consecutive_failures", "created_at"),
)


def counted(status: str) -> Coalesce:
    """The number of a webhook's deliveries that have the status."""
    own = Delivery.objects.filter(tenant=OuterRef("tenant"), webhook=OuterRef("pk"), status=status)
    numbers = own.order_by().values("tenant").annotate(number=Count("id")).values("number")
    return Coalesce(Subquery(numbers), 0)


COUNTS = {status: counted(status) for status in ("pending", "failed")}


class Command(ServiceCommand):
    help = "List webhooks with the counts of their pending and failed deliveries."
    takes_environment = True
    arguments: ClassVar = {
        "--tenant": {"type": UUID, "metavar": "ID", "help": "only this tenant's"},
    }

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        webhooks: Any = Webhook.objects.existing().newest_first()
        if options["tenant"]:
            webhooks = webhooks.for_tenant(options["tenant"])
        return list(webhooks.values(*COLUMNS, **COUNTS))
