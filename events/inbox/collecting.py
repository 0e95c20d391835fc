"""The safety net of the inbox: it opens the events above low that ingest did not.

Chunk by chunk in the order of ids, behind every open transaction, so that each event is looked at once.
"""

import time
from datetime import datetime
from uuid import UUID

from compliance.core import environments
from compliance.stores import sql
from events.inbox.models import OpenEvent
from events.inbox.reviewing import REVIEWING
from events.models import BehaviorEvent, EventReview, ScorerProgress
from events.risk.risk_days import settled_until

NAME = "inbox"
CHUNK = 50_000  # events of one step
RUN_SECONDS = 45.0  # after which a run begins no other step: the next one goes on
NOTHING = UUID(int=0)

_OPEN, _EVENTS, _REVIEWS = (model._meta.db_table for model in (OpenEvent, BehaviorEvent, EventReview))
_COLLECT = f"""
INSERT INTO {_OPEN} (event_id, tenant_id, agent_id, action_type, risk_band, risk_score, received_at)
SELECT id, tenant_id, agent_id, action_type, risk_band, risk_score, received_at FROM {_EVENTS} AS event
WHERE id >= %(low)s AND id < %(high)s AND risk_band <> 'low'
    AND NOT EXISTS (
        SELECT FROM {_REVIEWS} AS said WHERE said.tenant_id = event.tenant_id AND said.event_id = event.id
    )
ON CONFLICT DO NOTHING
"""  # noqa: S608  (only names of tables are put into the text)


def collect(*, now: datetime, seconds: float = RUN_SECONDS) -> int:
    """Open the events above low that have neither a verdict nor a row in the inbox, for about so long.

    Returns how many were opened. Safe to repeat.
    """
    until = time.monotonic() + seconds
    total = 0
    while True:
        with environments.atomic():
            opened = _next_chunk(now)
        total += opened or 0
        if opened is None or time.monotonic() >= until:
            return total


def _next_chunk(now: datetime) -> int | None:
    """Look at the next events; return how many were opened, None if there is nothing to do."""
    settled = settled_until(now)
    ScorerProgress.objects.get_or_create(name=NAME, defaults={"upto": NOTHING})
    progress = ScorerProgress.objects.select_for_update(skip_locked=True).filter(name=NAME).first()
    if progress is None or progress.upto >= settled:
        return None
    upto = BehaviorEvent.objects.id_after(CHUNK, low=progress.upto, high=settled) or settled
    span = {"low": progress.upto, "high": upto}
    # A review that has looked for its event's row, and found none, must have committed before this looks.
    sql.query("SELECT pg_advisory_xact_lock(%s)", [REVIEWING])
    opened = sql.execute(_COLLECT, span)
    progress.upto = upto
    progress.save(update_fields=["upto"])
    return opened
