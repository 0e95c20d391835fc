"""Errors of agents."""

from collections.abc import Iterable

from compliance.core.errors import Forbidden, InvalidState, NotFound


class AgentNotFound(NotFound):
    message = "Agent not found"


class AgentNotActive(InvalidState):
    message = "Agent is not active"


class AgentRetired(InvalidState):
    message = "Agent is retired"


class ObserveNotByKey(Forbidden):
    message = "Only a person in the console may set an agent to observe"


class StopNotUndone(Forbidden):
    message = "This API key lacks the scope agents:reinstate: the service stopped this agent"


class AgentNotSuspended(InvalidState):
    message = "Only a suspended agent can be reinstated"


class AgentAlreadySuspended(InvalidState):
    message = "Agent is already suspended"


class BlueprintNotFound(NotFound):
    message = "Blueprint not found"


class RenewalNotFound(NotFound):
    message = "Renewal not found"


class WiderThanBlueprint(InvalidState):
    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(f"The agent would go beyond its blueprint: {', '.join(names)}")
