"""`doctor`: check the service, and say how to mend what is wrong."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, ClassVar

from compliance.core.commands import EXIT_FINDINGS, EXIT_UNAVAILABLE, ServiceCommand
from compliance.core.environments import Environment
from compliance.core.wording import counted
from ops.doctor import Finding, examine


class FindingsCommand(ServiceCommand):
    """Exit code 5 if a dependency is down, 6 if anything else is wrong."""

    def _tell(self, findings: Sequence[Finding], *, as_json: bool) -> None:
        """Print every finding, and fail if one of them is bad."""
        if as_json:
            self._show([asdict(finding) for finding in findings], as_json=True)
        else:
            for finding in findings:
                self.stdout.write(finding.line())
        bad = [finding for finding in findings if not finding.ok]
        if bad:
            is_down = any(finding.is_down for finding in bad)
            self._fail(counted(len(bad), "problem"), EXIT_UNAVAILABLE if is_down else EXIT_FINDINGS)


class Command(FindingsCommand):
    help = (
        "Check databases, migrations, Redis, HSM, CAs, revocation lists, key pool, partitions, workers and "
        "keys, in both environments; safe beside a running service. Exit code 5 if a dependency is down, 6 "
        "if anything else is wrong."
    )
    arguments: ClassVar = {
        "--environment": {"choices": list(map(str, Environment)), "help": "check only this one"},
        "--fix": {
            "action": "store_true",
            "help": "repair what is safe to repair; destroy agents' orphan keys",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> None:
        chosen = [Environment(options["environment"])] if options["environment"] else list(Environment)
        findings = examine(chosen=chosen, fix=options["fix"], now=now)
        self._tell(findings, as_json=options["json"])
