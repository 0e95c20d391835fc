"""How long the service only observed an agent: pure functions of the audited changes of modes."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

OBSERVE = "observe"


@dataclass(frozen=True)
class ModeChange:
    """An audited change; None is the mode of the agent's tenant."""

    at: datetime
    before: str | None
    after: str | None


@dataclass(frozen=True)
class ModeHistory:
    """The mode that a row has, and its changes, oldest first."""

    current: str | None
    changes: Sequence[ModeChange] = ()

    def at(self, moment: datetime) -> str | None:
        """Return the mode at a moment: what the last change up to it set, or the first one after it found."""
        past = bisect_right(self.changes, moment, key=lambda change: change.at)
        if past:
            return self.changes[past - 1].after
        return self.changes[0].before if self.changes else self.current


@dataclass(frozen=True)
class AgentMode:
    """The mode that counted for an agent at the end of a period, and for how long it was only observed."""

    at_end: str
    time_observed: timedelta


def agent_mode(own: ModeHistory, tenants: ModeHistory, *, start: datetime, end: datetime) -> AgentMode:
    """Return how an agent stood in [start, end): its own mode counts, else its tenant's."""

    def mode_at(moment: datetime) -> str:
        return own.at(moment) or tenants.at(moment) or ""

    moments = {change.at for change in (*own.changes, *tenants.changes) if start < change.at < end}
    bounds = [start, *sorted(moments), max(start, end)]
    observed = (until - since for since, until in pairwise(bounds) if mode_at(since) == OBSERVE)
    return AgentMode(mode_at(bounds[-1]), sum(observed, timedelta()))
