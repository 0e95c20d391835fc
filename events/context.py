"""What the scorer is told of an agent: its scope, its limits, its own domain, its tenant's marked places."""

import msgspec

from agents.models import Agent
from certificates.models import Certificate
from certificates.scope import certified_actions
from events.scoring import Context, FinancialScope, normal_actions


def context_of(
    agent: Agent, certificate: Certificate | None, marked: frozenset[str] = frozenset()
) -> Context:
    """The agent's context; `certificate` is its latest, `marked` are places of attacks on its tenant."""
    permitted = certified_actions(agent, certificate)
    return Context(
        permitted_actions=None if permitted is None else normal_actions(permitted),
        financial_scope=_financial_scope(agent.financial_scope),
        home_domain=_domain(agent.inbox_address),
        marked=marked,
    )


def _financial_scope(stored: object) -> FinancialScope | None:
    if not stored:
        return None
    return msgspec.convert(stored, FinancialScope, strict=False)


def _domain(address: str | None) -> str | None:
    """The domain of a mail address, case-folded; None without one."""
    domain = (address or "").strip().casefold().rpartition("@")[2].strip(".")
    return domain if "." in domain else None
