"""Answers about agents."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class FinancialScope(Record):
    """The trading limits of an agent; amounts in US dollars."""

    max_single_trade_usd: float
    daily_limit_usd: float
    permitted_instruments: tuple[str, ...]
    permitted_venues: tuple[str, ...]
    leverage_permitted: bool
    max_leverage_ratio: float | None = None


@dataclass(frozen=True, kw_only=True)
class Agent(Record):
    """An agent."""

    id: str
    tenant_id: str
    name: str
    description: str | None
    model: str | None
    model_hash: str
    version: str | None
    status: str
    inbox_address: str | None
    metadata: Mapping[str, Any] | None
    financial_scope: FinancialScope | None
    agent_card: Mapping[str, Any] | None
    enforcement: str | None
    effective_enforcement: str
    did: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class UpdatedAgent(Agent):
    """An agent after a change; a renewal brings what `renewal_needed_for` names into its certificate."""

    renewal_needed_for: tuple[str, ...]
