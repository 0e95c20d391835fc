"""`bootstrap_dev --state FILE`: make the contents of a development stack."""

from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from compliance.core.commands import ServiceCommand
from ops.bootstrap import bootstrap


class Command(ServiceCommand):
    help = "Make CAs, token keys, a demo tenant with API keys, and console log-ins, where they are missing."
    arguments: ClassVar = {
        "--state": {"type": Path, "required": True, "help": "file for API keys and log-ins"},
        "--migrate": {"action": "store_true", "help": "migrate both databases first"},
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, str]:
        return bootstrap(state_file=options["state"], migrate=options["migrate"], now=now)
