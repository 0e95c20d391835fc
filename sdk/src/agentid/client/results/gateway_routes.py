"""Answers about routes of gateways."""

from dataclasses import dataclass
from datetime import datetime

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class GatewayRoute(Record):
    """A route of a tenant's gateways."""

    id: str
    name: str
    credentials: tuple[str, ...]
    action: str | None
    audience: str | None
    highest_band: str
    root: str
    agents: str
    nonce_required: bool
    created_at: datetime
    updated_at: datetime
