"""Reports an agent's actions; `docs/reporter.md` says what is promised."""

from agentid.reporting.batches import Rejected
from agentid.reporting.encoding import ActionType
from agentid.reporting.reporter import Reporter, Statistics

__all__ = ["ActionType", "Rejected", "Reporter", "Statistics"]
