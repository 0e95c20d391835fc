"""Queries for agents."""

from typing import TYPE_CHECKING, Final

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from agents.errors import AgentNotFound, BlueprintNotFound, RenewalNotFound
from agents.risk import MEDIUM
from compliance.stores.portions import JobRows
from compliance.stores.rows import TenantRows

if TYPE_CHECKING:
    from agents.models import Agent, Blueprint, BlueprintRenewal


def is_in_mode(enforcement: str) -> Q:
    """Match the agents in a mode: their own, else their tenant's."""
    return Q(enforcement=enforcement) | Q(enforcement=None, tenant__enforcement=enforcement)


IS_ORPHAN: Final = Q(owner_email=None) & ~Q(status="retired")
"""Nobody answers for the agent; retired ones need nobody."""

NEEDS_ATTENTION: Final = Q(status="suspended") | Q(status="active", risk_score__gte=MEDIUM)
"""A person should review the agent: it is suspended, or risky while active."""


class AgentQuerySet(TenantRows["Agent"]):
    """Agents of the current environment."""

    missing = AgentNotFound

    def orphaned(self, orphaned: bool | None = True) -> "AgentQuerySet":
        """Return the agents that nobody answers for, but retired ones; the others if False, all if None."""
        return self if orphaned is None else self.filter(IS_ORPHAN if orphaned else ~IS_ORPHAN)

    def dormant(self, is_dormant: bool | None) -> "AgentQuerySet":
        return self if is_dormant is None else self.filter(dormant_at__isnull=not is_dormant)

    def matching(self, text: str | None) -> "AgentQuerySet":
        """Agents that have `text` within their name or id, in any case."""
        if not text:
            return self
        named = self.alias(id_text=Cast("id", TextField()))
        return named.filter(Q(name__icontains=text) | Q(id_text__icontains=text))

    def with_tenant(self) -> "AgentQuerySet":
        """Read the tenant too, whose mode and budget count for agents without their own."""
        return self.select_related("tenant")


class BlueprintQuerySet(TenantRows["Blueprint"]):
    """Blueprints of the current environment."""

    missing = BlueprintNotFound


class BlueprintRenewalQuerySet(JobRows["BlueprintRenewal"]):
    """Renewals of blueprints' agents in the current environment."""

    missing = RenewalNotFound
    is_unfinished = Q(ended_at=None)
