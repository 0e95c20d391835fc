"""`audit_erase --entry ID | --actor ID --reason TEXT`: erase personal parts of audit entries."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from auditlog.disposal import erasing
from auditlog.leaves import ERASABLE
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand


class Command(ServiceCommand):
    help = "Erase personal parts of sealed audit entries. Their leaves and every proof of them stay valid."
    takes_environment = True
    requires_environment = True
    arguments: ClassVar = {
        "--entry": {"type": UUID, "action": "append", "metavar": "ID", "help": "may be repeated"},
        "--actor": {"metavar": "ACTOR_ID", "help": "every entry of this actor, such as person:0b5c…"},
        "--part": {
            "action": "append",
            "choices": ERASABLE,
            "help": "may be repeated; by default all parts, and with --actor actor_id alone",
        },
        "--reason": {"required": True, "help": "stands in the entry that records the erasure"},
    }
    exactly_one = ("--entry", "--actor")

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        by_actor = AuditEntry.objects.filter(actor_id=options["actor"]).order_by("created_at", "id")
        found = options["entry"] or list(by_actor.values_list("id", flat=True))
        parts = options["part"] or (ERASABLE if options["entry"] else ["actor_id"])
        actor, reason = Actor.system("audit_erase"), options["reason"]
        return [
            {
                "id": str(entry_id),
                "erased": erasing.erase(entry_id=entry_id, parts=parts, reason=reason, actor=actor, now=now),
            }
            for entry_id in found
        ]
