"""What an agent may do, as every decision takes it: the scope that was certified, not its profile's."""

from agents.models import Agent
from certificates.models import Certificate


def certified_actions(agent: Agent, certificate: Certificate | None) -> list[str] | None:
    """The agent's scope: what its latest certificate says; before the first, what its profile says.

    None when none is declared, [] when nothing is permitted. An edited profile counts once it is certified.
    """
    if certificate is None:
        return agent.permitted_actions
    certified: list[str] | None = certificate.claims["permitted_actions"]
    return certified
