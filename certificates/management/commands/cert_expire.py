"""`cert_expire`: mark expired certificates."""

from datetime import datetime
from typing import Any

from certificates import services
from compliance.core.commands import ServiceCommand


class Command(ServiceCommand):
    help = "Mark and announce certificates that are past their end, as a task does every 30 seconds."
    takes_environment = True

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        count = 0
        while done := services.expire_due(now=now):
            count += done
        return {"environment": options["environment"], "expired": count}
