"""Register and revoke agents' keys; both are audited."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError

from agents.errors import AgentRetired
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from delegation.agent_keys.errors import (
    AgentKeyExists,
    AgentKeyNotProven,
    InvalidAgentKey,
    TooManyAgentKeys,
)
from delegation.agent_keys.models import AgentKey
from delegation.jose.holder_keys import EDDSA, holder_key

MOST_KEYS: Final = 5
"""Keys in force of one agent: for its instances, and for a change of keys."""


def register(
    *,
    tenant_id: UUID,
    agent_id: Any,
    jwk: Mapping[str, Any],
    proven_key: str | None,
    actor: Actor,
    now: datetime,
) -> AgentKey:
    """Register an agent's key, whose possession the caller proved just now (`proven_key`, a thumbprint).

    Raises: AgentNotFound, AgentRetired, AgentKeyNotProven, InvalidAgentKey, AgentKeyExists, TooManyAgentKeys.
    """
    if proven_key is None:
        raise AgentKeyNotProven()
    try:
        key = holder_key(jwk, algorithm=EDDSA)
    except ValueError as error:
        raise InvalidAgentKey() from error
    if key.jkt != proven_key:
        raise AgentKeyNotProven("The proof is by another key than jwk")
    try:
        with environments.atomic():
            agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
            if agent.status == AgentStatus.RETIRED:
                raise AgentRetired()
            if AgentKey.objects.for_tenant(tenant_id).of_agent(agent.id).in_force().count() >= MOST_KEYS:
                raise TooManyAgentKeys()
            row = AgentKey(
                tenant_id=tenant_id, agent_id=agent.id, thumbprint=key.jkt, x=jwk["x"], created_at=now
            )
            row.save(force_insert=True)
            said = f"Key of agent {agent.name} registered"
            _record(row, AuditAction.AGENT_KEY_REGISTERED, said, actor, now)
    except IntegrityError as error:
        raise AgentKeyExists() from error
    return row


def revoke(
    *, tenant_id: UUID, agent_id: Any, key_id: Any, reason: str, actor: Actor, now: datetime
) -> AgentKey:
    """End a key for good; a revoked one stays as it is. Raises: AgentNotFound, AgentKeyNotFound."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
        row = AgentKey.objects.for_tenant(tenant_id).of_agent(agent.id).locked().find(key_id)
        if row.revoked_at is None:
            # Clocks of two hosts differ.
            row.revoked_at = max(now, row.created_at)
            row.save(update_fields=["revoked_at"])
            said = f"Key of agent {agent.name} revoked: {reason}"
            _record(row, AuditAction.AGENT_KEY_REVOKED, said, actor, now, reason=reason)
    return row


def _record(
    row: AgentKey, action: AuditAction, description: str, actor: Actor, now: datetime, **metadata: Any
) -> None:
    auditlog.record(
        tenant_id=row.tenant_id,
        action=action,
        affected_id=row.agent_id,
        description=description,
        metadata={
            "agent_id": str(row.agent_id),
            "key_id": str(row.id),
            "thumbprint": row.thumbprint,
            **metadata,
        },
        actor=actor,
        now=now,
    )
