"""`doctor`: is the service in order, and what to do if it isn't."""

from argparse import ArgumentParser
from dataclasses import asdict
from datetime import datetime
from typing import Any

from compliance.commands import EXIT_FINDINGS, EXIT_UNAVAILABLE, ServiceCommand
from compliance.environments import Environment
from compliance.wiring.doctor import Finding, examine


class Command(ServiceCommand):
    help = (
        "Check databases, migrations, Redis, HSM, CAs, revocation lists, key pool, partitions, workers and "
        "keys, in both environments; safe beside a live service. Exits with 5 when a dependency is "
        "down, with 6 for anything else that is wrong."
    )

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--environment",
            choices=[environment.value for environment in Environment],
            help="only this one",
        )
        parser.add_argument(
            "--fix", action="store_true", help="repair what is safe to, and destroy keys that nothing names"
        )

    def run(self, *, now: datetime, **options: Any) -> None:
        chosen = [Environment(options["environment"])] if options["environment"] else list(Environment)
        findings = examine(chosen=chosen, fix=options["fix"], now=now)
        if options["json"]:
            self._show([asdict(finding) for finding in findings], as_json=True)
        else:
            for finding in findings:
                self.stdout.write(_line(finding))
        self._judge(findings)

    def _judge(self, findings: list[Finding]) -> None:
        bad = [finding for finding in findings if not finding.ok]
        if bad:
            is_down = any(finding.is_down for finding in bad)
            self._fail(
                "1 problem" if len(bad) == 1 else f"{len(bad)} problems",
                EXIT_UNAVAILABLE if is_down else EXIT_FINDINGS,
            )


def _line(finding: Finding) -> str:
    mark, repaired = "✓" if finding.ok else "✗", f" ({finding.fixed})" if finding.fixed else ""
    line = f"{mark} {finding.environment:<4}  {finding.check:<24}{finding.detail}{repaired}"
    return line if finding.ok else f"{line}\n        → {finding.remedy}"
