"""An agent's context for the scorer: its scope, limits and domain, and its tenant's marked places."""

import msgspec

from agents.models import Agent
from certificates.models import Certificate, certified_actions
from events.risk.scoring.contract import NO_MARKS, Context, FinancialScope, Marks, normal_actions


def context_of(agent: Agent, certificate: Certificate | None, marked: Marks = NO_MARKS) -> Context:
    """Return the agent's context; `certificate`: its latest; `marked`: the tenant's places of attacks."""
    permitted, limits = certified_actions(agent, certificate), agent.financial_scope
    return Context(
        permitted_actions=None if permitted is None else normal_actions(permitted),
        financial_scope=msgspec.convert(limits, FinancialScope, strict=False) if limits else None,
        home_domain=_domain(agent.inbox_address),
        marked=marked,
    )


def _domain(address: str | None) -> str | None:
    domain = (address or "").strip().casefold().rpartition("@")[2].strip(".")
    return domain if "." in domain else None
