"""Answers about trusted issuers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class TrustedIssuer(Record):
    """An issuer whose ID tokens the tenant trusts."""

    id: str
    issuer: str
    jwks_uri: str | None
    jwks: Mapping[str, Any] | None
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...]
    subject_claim: str
    required_claims: Mapping[str, Any]
    max_age_seconds: int
    active: bool
    created_at: datetime
    updated_at: datetime
