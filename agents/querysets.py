"""Queries for agents."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import models
from django.db.models import Q

from agents.errors import AgentNotFound
from compliance.core.identifiers import parse_id

if TYPE_CHECKING:
    from agents.models import Agent


def is_in_mode(enforcement: str) -> Q:
    """Match the agents in a mode: their own, else their tenant's."""
    return Q(enforcement=enforcement) | Q(enforcement=None, tenant__enforcement=enforcement)


class AgentQuerySet(models.QuerySet["Agent"]):
    """Agents of the current environment."""

    def for_tenant(self, tenant_id: UUID) -> "AgentQuerySet":
        return self.filter(tenant_id=tenant_id)

    def with_status(self, status: str | None) -> "AgentQuerySet":
        return self.filter(status=status) if status else self

    def with_mode(self) -> "AgentQuerySet":
        """Read the tenant too, whose mode counts for agents without one of their own."""
        return self.select_related("tenant")

    def in_mode(self, enforcement: str) -> "AgentQuerySet":
        """Filter by the mode that counts."""
        return self.filter(is_in_mode(enforcement))

    def locked(self) -> "AgentQuerySet":
        """Lock the rows until the transaction ends; rows that refer to them can still be created."""
        return self.select_for_update(of=("self",), no_key=True)

    def find(self, agent_id: Any) -> "Agent":
        """Return the agent with an id from a client; raises `AgentNotFound`, also if malformed."""
        agent = self.filter(id=parse_id(str(agent_id))).first()
        if agent is None:
            raise AgentNotFound()
        return agent
