"""`cert_issue`: certify an agent."""

from datetime import datetime
from typing import Any, ClassVar

from agents.models import Agent
from auditlog.vocabulary import Actor
from certificates.issuing import issuance
from compliance.core.commands import ServiceCommand, fields


class Command(ServiceCommand):
    help = "Issue a certificate for an agent, or with --renew a successor that supersedes its active one."
    takes_environment = True
    arguments: ClassVar = {
        "--agent": {"required": True, "metavar": "ID", "help": "the agent's id"},
        "--renew": {"action": "store_true", "help": "replace the active certificate"},
    }

    def run(self, *, now: datetime, **options: Any) -> dict[str, Any]:
        agent = Agent.objects.find(options["agent"])
        verb = issuance.renew_of_agent if options["renew"] else issuance.issue
        certificate = verb(
            tenant_id=agent.tenant_id, agent_id=agent.id, actor=Actor.system("cert_issue"), now=now
        )
        return fields(certificate, "agent_id", "serial_number", "expires_at", certificate_id="id")
