"""Reports an agent's actions; `docs/reporter.md` says what is promised."""

from agentid.reporting.batches import Rejected as Rejected
from agentid.reporting.encoding import ActionType as ActionType
from agentid.reporting.reporter import Reporter as Reporter
from agentid.reporting.reporter import Statistics as Statistics
