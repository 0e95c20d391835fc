"""`webhook_resend WEBHOOK --delivery ID | --failed-since TIME`: send past events again."""

from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import UUID

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from webhooks import services
from webhooks.models import Webhook


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 date or date-time, in UTC unless it names another offset; raises `ValueError`."""
    parsed = datetime.fromisoformat(text)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


class Command(ServiceCommand):
    help = "Redeliver one delivery, or every event whose last delivery has failed since a time."
    takes_environment = True
    arguments: ClassVar = {
        "webhook": {"type": UUID, "metavar": "WEBHOOK"},
        "--delivery": {"type": UUID, "metavar": "ID"},
        "--failed-since": {"type": parse_time, "metavar": "TIME", "help": "ISO 8601"},
    }
    exactly_one = ("--delivery", "--failed-since")

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        webhook = Webhook.objects.existing().find(options["webhook"])
        actor = Actor.system("webhook_resend")
        common: dict[str, Any] = {"tenant_id": webhook.tenant_id, "webhook_id": webhook.id, "actor": actor}
        if options["delivery"]:
            found = [services.redeliver(delivery_id=options["delivery"], **common, now=now)]
        else:
            found = services.redeliver_failed(since=options["failed_since"], **common, now=now)
        return [{"id": str(row.id), "event_id": str(row.message_id)} for row in found]
