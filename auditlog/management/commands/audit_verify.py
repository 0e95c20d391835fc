"""`audit_verify`: verify audit logs, and name what has been tampered with."""

import sys
import time
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import Error

from auditlog.tlog.lines import TlogError
from auditlog.tlog.notes import Note, VerifierKey
from auditlog.tlog.policy import Policy
from auditlog.verifying.findings import LogOutcome, Verdict
from auditlog.verifying.live_log import Demands, Tell, verify_log
from compliance.core import environments
from compliance.core.commands import ServiceCommand
from compliance.core.environments import Environment
from compliance.core.errors import Invalid

EXIT_CODES: Final = {LogOutcome.TAMPERED: 1, LogOutcome.CANNOT_TELL: 2, LogOutcome.VERIFIED: 0}
"""The worst first."""
PAUSE_SECONDS: Final = {True: 0.2, False: 10.0}
"""Between two lines of progress, on a terminal and elsewhere."""
REPEATED: Final[dict[str, Any]] = {"action": "append", "default": []}


class Command(ServiceCommand):
    help = (
        "Verify the audit log from its entries up. Exit code 0: verified, 1: tampered with, 2: cannot tell."
    )
    requires_system_checks = []

    arguments: ClassVar = {
        "--environment": {"choices": list(map(str, Environment)), "help": "verify only this log"},
        "--against": {
            **REPEATED,
            "type": Path,
            "metavar": "FILE",
            "help": "a checkpoint that the log must contain; may be repeated",
        },
        "--key": {
            **REPEATED,
            "metavar": "VKEY",
            "help": "trust this key instead of the log's own; may be repeated",
        },
        "--policy": {
            "type": Path,
            "metavar": "FILE",
            "help": "tlog-policy file of witnesses that must have cosigned; AUDIT_WITNESS_POLICY by default",
        },
    }

    def run(self, *, now: datetime, **options: Any) -> list[Verdict]:
        try:
            own = settings.AUDIT_WITNESS_POLICY
            path = options["policy"] or (Path(own) if own else None)
            policy = Policy.parse(path.read_bytes()) if path else None
            against = [(str(file), Note.parse(file.read_bytes())) for file in options["against"]]
            demands = Demands([VerifierKey.parse(key) for key in options["key"]], policy, against)
            verdicts = []
            for environment in Environment:
                if options["environment"] in (None, environment):
                    with environments.use(environment):
                        verdicts.append(verify_log(demands=demands, tell=self._telling(environment), now=now))
            return verdicts
        except (Error, OSError, TlogError, ValueError, TypeError) as error:
            # Also what no code of the service writes, in tables whose columns their owner has altered.
            raise Invalid(f"Cannot tell: {type(error).__name__}: {error}") from error

    def _telling(self, environment: Environment) -> Tell:
        told = time.monotonic()

        def tell(done: int, size: int, seconds: float) -> None:
            nonlocal told
            is_terminal = sys.stderr.isatty()
            if done == size or time.monotonic() - told > PAUSE_SECONDS[is_terminal]:
                told = time.monotonic()
                rate = done / max(seconds, 0.001)
                line = f"{environment}: {done / size:4.0%}, {done:,} entries, {rate:,.0f}/s"
                self.stderr.write(line, ending="\r" if is_terminal and done < size else "\n")

        return tell

    def _show(self, result: list[Verdict], *, as_json: bool) -> None:
        if as_json:
            rows = [
                {
                    "subject": verdict.subject,
                    "outcome": verdict.outcome,
                    **verdict.counts,
                    "flaws": [asdict(flaw) for flaw in verdict.flaws],
                    "flaw_count": verdict.flaw_count,
                    "doubts": verdict.doubts,
                }
                for verdict in result
            ]
            super()._show(rows, as_json=True)
        else:
            for verdict in result:
                self.stdout.write(f"{verdict.subject}: {verdict.outcome.upper()}")
                lines = list(map(str, verdict.flaws))
                if verdict.flaw_count > len(verdict.flaws):
                    lines.append(f"and {verdict.flaw_count - len(verdict.flaws)} more")
                counts = "  ".join(f"{name}={value}" for name, value in verdict.counts.items())
                for line in (*lines, *verdict.doubts, counts):
                    self.stdout.write(f"  {line}")
        worst = min((verdict.outcome for verdict in result), key=list(EXIT_CODES).index)
        sys.exit(EXIT_CODES[worst])

    def _fail(self, message: str, code: int) -> None:
        super()._fail(message, EXIT_CODES[LogOutcome.CANNOT_TELL])
