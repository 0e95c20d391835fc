"""`audit_key_list`: the keys that sign or signed the audit log's checkpoints."""

from datetime import datetime
from typing import Any

from auditlog.models import LogKey
from auditlog.sealing import keys
from compliance.core.commands import ServiceCommand, fields


class Command(ServiceCommand):
    help = "List the verifier keys (vkeys) of an environment's audit log, oldest first."
    takes_environment = True

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        return [describe(key) for key in keys.log_keys(now)]


def describe(key: LogKey) -> dict[str, Any]:
    vkey = keys.verifier_key(key).encode()
    return {"vkey": vkey, **fields(key, "active_from", "retired_at", "destroyed_at", uri="key_uri")}
