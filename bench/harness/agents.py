"""`python -m bench.harness.agents TENANT COUNT`: registers and certifies agents, one id a line on stdout."""

import sys
from uuid import UUID

import django

django.setup()

from agents import services as agents  # noqa: E402
from auditlog.vocabulary import Actor  # noqa: E402
from bench.harness.traffic import TOOLS  # noqa: E402
from certificates.issuing import issuance  # noqa: E402
from compliance.core import environments  # noqa: E402
from compliance.core.clock import now  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402

ACTOR = Actor.system("bench")


def main(tenant_id: UUID, count: int) -> None:
    """Make `count` active agents of the live environment."""
    with environments.use(Environment.LIVE):
        for number in range(count):
            fields = {
                "name": f"bench-{number}", "model": "gpt-5", "version": "2.1.0",
                "model_hash": "sha256:9f86d081884c7d659a2feaa0c55ad015",
                "metadata": {"permitted_actions": list(TOOLS)},
            }  # fmt: skip
            agent = agents.register(tenant_id=tenant_id, fields=fields, actor=ACTOR, now=now())
            issuance.issue(tenant_id=tenant_id, agent_id=agent.id, actor=ACTOR, now=now())
            print(agent.id, flush=True)


if __name__ == "__main__":
    main(UUID(sys.argv[1]), int(sys.argv[2]))
