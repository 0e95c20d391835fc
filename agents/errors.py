"""Errors of agents."""

from compliance.core.errors import InvalidState, NotFound


class AgentNotFound(NotFound):
    message = "Agent not found"


class AgentNotActive(InvalidState):
    message = "Agent is not active"


class AgentRetired(InvalidState):
    message = "Agent is retired"


class AgentNotSuspended(InvalidState):
    message = "Only a suspended agent can be reinstated"


class AgentAlreadySuspended(InvalidState):
    message = "Agent is already suspended"
