"""Reads of agents."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models

from agents.errors import AgentNotFound
from compliance.identifiers import parse_id

if TYPE_CHECKING:
    from agents.models import Agent


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents of the current environment."""

    def for_tenant(self, tenant_id: UUID) -> "AgentQuerySet":
        return self.filter(tenant_id=tenant_id)

    def with_status(self, status: str | None) -> "AgentQuerySet":
        return self.filter(status=status) if status else self

    def locked(self) -> "AgentQuerySet":
        """The rows locked until the transaction ends; foreign keys to them stay possible."""
        return self.select_for_update(of=("self",), no_key=True)

    def find(self, agent_id: Any) -> "Agent":
        """The agent with the id that a client wrote; raises `AgentNotFound`, for nonsense too."""
        parsed = agent_id if isinstance(agent_id, UUID) else parse_id(agent_id)
        agent = self.filter(id=parsed).first() if parsed else None
        if agent is None:
            raise AgentNotFound()
        return agent
