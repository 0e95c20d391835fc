"""An agent's decentralized identifier: `did:<service>:<live|test>:<agent uuid>`."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from compliance.environments import Environment
from compliance.identifiers import parse_id


@dataclass(frozen=True)
class AgentDid:
    """The parts of an agent's DID; `str()` gives the identifier."""

    environment: Environment
    agent_id: UUID

    def __str__(self) -> str:
        return f"did:{settings.SERVICE_NAME}:{self.environment.value}:{self.agent_id}"


def parse_did(text: str) -> AgentDid | None:
    """The DID that `text` spells exactly; None for anything else, other methods included."""
    scheme, _, rest = text.partition(":")
    method, _, identifier = rest.partition(":")
    environment, _, agent = identifier.partition(":")
    agent_id = parse_id(agent)
    if scheme != "did" or method != settings.SERVICE_NAME or agent_id is None or agent != str(agent_id):
        return None
    if environment not in {member.value for member in Environment}:
        return None
    return AgentDid(Environment(environment), agent_id)
