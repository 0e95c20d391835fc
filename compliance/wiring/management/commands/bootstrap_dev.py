"""`bootstrap_dev --state FILE`: what a development stack starts with."""

from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any

from compliance.commands import ServiceCommand
from compliance.wiring.bootstrap import bootstrap


class Command(ServiceCommand):
    help = "Make CAs, token keys, the demo tenant with its keys, and the console log-ins of development."

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--state", type=Path, required=True, help="where keys and log-ins are kept")
        parser.add_argument("--migrate", action="store_true", help="bring both databases up to date first")

    def run(self, *, now: datetime, **options: Any) -> dict[str, str]:
        made = bootstrap(state_file=options["state"], migrate=options["migrate"], now=now)
        return dict(vars(made))
