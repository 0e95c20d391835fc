"""`key_roll ID --environment live|test`: replace an API key, with an overlap."""

from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand, between
from tenancy import services


class Command(ServiceCommand):
    help = "Create and print a successor of an API key, and let the old key expire after an overlap."
    takes_environment = True
    requires_environment = True
    arguments: ClassVar = {
        "key_id": {"type": UUID, "metavar": "ID"},
        "--overlap-hours": {"type": between(0, 8_760), "default": 24, "metavar": "N"},
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        overlap = timedelta(hours=options["overlap_hours"])
        issued = services.roll_key(
            key_id=options["key_id"], overlap=overlap, actor=Actor.system("key_roll"), now=now
        )
        return {"id": str(issued.row.id), "key": issued.secret, "old_expires_at": now + overlap}
