"""`settings`: list every setting, its value in force and where that came from."""

from argparse import ArgumentParser
from dataclasses import asdict
from datetime import datetime
from typing import Any

from compliance.core.commands import ServiceCommand
from compliance.settings.declaring import Section, Variable
from compliance.settings.page import page


class Command(ServiceCommand):
    help = "List every setting, its value and where that came from; of secrets, only whether they are set."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--page", action="store_true", help="print docs/settings.md instead")

    def run(self, *, now: datetime, **options: Any) -> Any:
        if options["page"]:
            self.stdout.write(page(Section.every), ending="")
            return None
        if options["json"]:
            return [asdict(one) for section in Section.every for one in section.variables]
        for section in Section.every:
            self.stdout.write(f"{section.title}\n")
            for one in section.variables:
                self.stdout.write(_line(one))
        return None


def _line(one: Variable) -> str:
    value = f"({one.value or 'not set'})" if one.is_secret else one.value
    return f"  {one.name:<42} {one.source:<12} {value}".rstrip()
