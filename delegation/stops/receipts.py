"""Halt receipts: compact JWS by the token keys, over the Merkle root of what a stop did to each agent."""

from datetime import datetime
from typing import Any, Final

from compliance.core.json_values import written
from delegation.stops.errors import StopUnderWay
from delegation.stops.models import KindStop, StopOutcome
from delegation.token_keys.signed_records import ensure_signed

TYPE: Final = "halt+jwt"


def lines_of(stop: KindStop) -> list[dict[str, Any]]:
    """One line for each agent of the stop, in the order of the tree's leaves."""
    columns = stop.rows.order_by("id").values_list("agent_id", "serial_number", "decided_at", "outcome")
    return [
        {
            "agent_id": str(agent_id),
            "serial": serial,
            "stopped_at": written(decided_at) if outcome == StopOutcome.STOPPED else None,
            "outcome": outcome,
        }
        for agent_id, serial, decided_at, outcome in columns
    ]


def receipt_of(stop: KindStop, *, now: datetime) -> str:
    """Return the receipt of a stop, signed when first asked for. Raises: StopUnderWay, and 503 errors."""
    if stop.ended_at is None:
        raise StopUnderWay(retry_after=1)
    names = ("reason", "reason_code", "revoke", "stopped", "skipped", "failed")
    claims = {name: getattr(stop, name) for name in names}
    claims |= {"stop_id": str(stop.id), "count": stop.matched}
    return ensure_signed(stop, "receipt", claims, typ=TYPE, now=now)
