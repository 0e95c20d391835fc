"""`settings`: list every setting, its value in force and where that came from."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from compliance.core.commands import ServiceCommand
from compliance.settings.declaring import Section


class Command(ServiceCommand):
    help = "List every setting, its value and where that came from; of secrets, only whether they are set."

    def run(self, *, now: datetime, **options: Any) -> Any:
        if options["json"]:
            return [asdict(one) for section in Section.every for one in section.variables]
        for section in Section.every:
            self.stdout.write(f"{section.title}\n")
            for one in section.variables:
                value = one.value or f"({one.default or 'none'})"
                if one.is_secret:
                    value = f"({one.value or 'not set'})"
                self.stdout.write(f"  {one.name:<42} {one.source:<12} {value}")
        return None
