"""The base of commands that print findings."""

from collections.abc import Sequence
from dataclasses import asdict

from compliance.core.commands import EXIT_FINDINGS, EXIT_UNAVAILABLE, ServiceCommand
from compliance.core.wording import counted
from ops.doctor import Finding


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
