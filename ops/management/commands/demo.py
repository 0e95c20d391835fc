"""`demo`: play the life of an agent against the running service."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from compliance.core.environments import Environment
from ops.demo.scenario import DemoClient, play
from ops.demo.transcript import Transcript


class Command(BaseCommand):
    help = "Play the life of an agent over HTTP; exit 0 if every step goes as specified, else 1."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--base-url", default=settings.BASE_URL, help="the running service")
        names = [environment.value for environment in Environment]
        parser.add_argument("--environment", choices=names, default=Environment.TEST.value)

    def handle(self, *args: Any, **options: Any) -> None:
        environment = Environment(options["environment"])
        name = f"{environment.name}_API_KEY"
        key = os.environ.get(name)
        if not key:
            raise CommandError(f"Set {name} to a key with all scopes (`./run env` prints one).")
        transcript = Transcript(self.stdout)
        try:
            play(transcript, DemoClient(options["base_url"], key, environment))
        except Exception as error:  # noqa: BLE001  (any error ends the demo)
            self.stderr.write(f"  Stopped at step {transcript.count}: {type(error).__name__}: {error}")
            sys.exit(1)
        self.stdout.write(f"  All {transcript.count} steps as specified.")
        if transcript.slow:
            steps = ", ".join(map(str, transcript.slow))
            self.stdout.write(f"  Slower than the target (!) under this machine's present load: {steps}.")
