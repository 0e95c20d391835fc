"""`demo`: play the life of an agent against the running service and judge it."""

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from compliance.wiring.client import Api
from compliance.wiring.scenario import play
from compliance.wiring.story import Story


class Command(BaseCommand):
    help = "Play the life of an agent over HTTP; exits 0 when every step is as specified, else 1."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--base-url", default=settings.BASE_URL)

    def handle(self, *args: Any, **options: Any) -> None:
        key = os.environ.get("LIVE_API_KEY")
        if not key:
            raise CommandError("Set LIVE_API_KEY to a key with all scopes (`./run env` prints one).")
        story = Story(self.stdout)
        try:
            play(story, Api(options["base_url"], key))
        except Exception as error:  # noqa: BLE001  (whatever stops the play is the verdict)
            if not story.failures:
                self.stderr.write(f"{type(error).__name__}: {error}")
            self.stdout.write(f"  The scenario stopped at step {story.count}.")
            sys.exit(1)
        self.stdout.write(f"  All {story.count} steps as specified.")
        if story.slow:
            steps = ", ".join(map(str, story.slow))
            self.stdout.write(f"  Slower than the target (!) on this machine, as busy as it is now: {steps}.")
