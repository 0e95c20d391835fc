"""An agent's decentralized identifier: `did:<service>:<live|test>:<agent uuid>`."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from compliance.core.environments import Environment
from compliance.core.identifiers import parse_id


@dataclass(frozen=True)
class AgentDid:
    """The parts of an agent's DID; `str()` gives the identifier."""

    environment: Environment
    agent_id: UUID

    def __str__(self) -> str:
        return f"did:{settings.SERVICE_NAME}:{self.environment.value}:{self.agent_id}"


def parse_did(text: str) -> AgentDid | None:
    """Return the DID that `text` spells; None for anything else."""
    for environment in Environment:
        prefix = f"did:{settings.SERVICE_NAME}:{environment.value}:"
        agent_id = parse_id(text.removeprefix(prefix))
        if agent_id is not None and text == f"{prefix}{agent_id}":
            return AgentDid(environment, agent_id)
    return None
