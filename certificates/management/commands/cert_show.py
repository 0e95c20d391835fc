"""`cert_show`: certificates and their status."""

from datetime import datetime
from typing import Any, ClassVar

from agents.models import Agent
from certificates.models import Certificate
from certificates.pki.decoded import decoded
from compliance.core.commands import ServiceCommand, fields


class Command(ServiceCommand):
    help = "Show one certificate by its serial number, decoded, or all of an agent."
    takes_environment = True
    arguments: ClassVar = {
        "--serial": {"help": "hex in any case, with or without colons"},
        "--agent": {"metavar": "ID", "help": "the agent's id"},
    }
    exactly_one = ("--serial", "--agent")

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]] | dict[str, Any]:
        if options["serial"]:
            found = Certificate.objects.with_serial_text(options["serial"])
            shown = dict(decoded(found.certificate_pem.encode()))
            return {**_row(found, now), **shown, "pem": found.certificate_pem}
        agent = Agent.objects.find(options["agent"])
        return [_row(found, now) for found in Certificate.objects.of_agent(agent.id)]


def _row(certificate: Certificate, now: datetime) -> dict[str, Any]:
    names = ("id", "agent_id", "serial_number", "issued_at", "expires_at", "revoked_at", "revocation_reason")
    rest = ("revocation_code", "first_crl_number", "crl_shard", "kms_key_arn", "key_storage")
    return {"status": certificate.status_at(now).value, **fields(certificate, *names, *rest)}
