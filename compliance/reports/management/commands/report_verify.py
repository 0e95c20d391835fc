"""`report_verify`: verify the bundle of a report."""

from argparse import ArgumentParser
from datetime import datetime
from pathlib import Path
from typing import Any

from auditlog.sealing import keys
from auditlog.tlog.errors import TlogError
from auditlog.tlog.notes import VerifierKey
from compliance.core import environments
from compliance.core.commands import CheckCommand
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from compliance.reports.bundles.archive import unpack
from compliance.reports.bundles.verifying import findings


class Command(CheckCommand):
    help = (
        "Verify the bundle of a report: signature, key and digests. Exit code 0: verified, 6: not verified."
    )
    requires_system_checks = []

    def add_own_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("bundle", type=Path, help="the ZIP of a report")
        parser.add_argument(
            "--key",
            action="append",
            default=[],
            metavar="VKEY",
            help="trust this key of the audit log instead of this service's own; no database is used then",
        )

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        try:
            packed = options["bundle"].read_bytes()
            trusted = [VerifierKey.parse(vkey).public for vkey in options["key"]]
        except (OSError, TlogError) as error:
            raise Invalid(str(error)) from error
        found = findings(unpack(packed), trusted or _own_keys(now))
        return [{"bundle": str(options["bundle"]), "verified": not found, "findings": found}]


def _own_keys(now: datetime) -> list[bytes]:
    """Return the keys of both environments' audit logs."""
    found = []
    for environment in Environment:
        with environments.use(environment):
            found += [key.public for key in keys.verifier_keys(now=now)]
    return found
