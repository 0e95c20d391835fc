"""Create and change blueprints; each change is audited."""

from datetime import datetime
from typing import Any
from uuid import UUID

from agents.blueprints.inheritance import values_of
from agents.models import Blueprint
from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.json_values import same_json


def create(*, tenant_id: UUID, fields: dict[str, Any], actor: Actor, now: datetime) -> Blueprint:
    """Create a blueprint of fields by name."""
    with environments.atomic():
        made = Blueprint(tenant_id=tenant_id, **fields, created_at=now, updated_at=now)
        made.save(force_insert=True)
        stated = {name: value for name, value in _stated(made).items() if value is not None}
        auditlog.record_all([blueprint_entry(made, AuditAction.BLUEPRINT_CREATED, actor, now, **stated)])
    return made


def update(
    *, tenant_id: UUID, blueprint_id: Any, changes: dict[str, Any], actor: Actor, now: datetime
) -> Blueprint:
    """Set fields by name; its agents stay as they are until they are brought up to date.

    Raises: BlueprintNotFound.
    """
    with environments.atomic():
        blueprint = Blueprint.objects.for_tenant(tenant_id).locked().find(blueprint_id)
        before = _stated(blueprint)
        for name, value in changes.items():
            setattr(blueprint, name, value)
        told = {
            name: {"before": before[name], "after": value}
            for name, value in _stated(blueprint).items()
            if not same_json(value, before[name])
        }
        if told:
            blueprint.updated_at = now
            blueprint.save(force_update=True)
            entry = blueprint_entry(blueprint, AuditAction.BLUEPRINT_UPDATED, actor, now, **told)
            auditlog.record_all([entry])
    return blueprint


def _stated(blueprint: Blueprint) -> dict[str, Any]:
    return {**values_of(blueprint), "name": blueprint.name, "ask_policy": blueprint.ask_policy}


def blueprint_entry(
    blueprint: Blueprint, action: AuditAction, actor: Actor, now: datetime, **metadata: Any
) -> AuditEntry:
    """Return an audit entry about a blueprint that is not yet recorded."""
    description = f"Blueprint {blueprint.name} {action.value.rpartition('.')[2].replace('_', ' ')}"
    metadata = {"blueprint_id": str(blueprint.id), **metadata}
    return auditlog.entry(
        of=blueprint, action=action, description=description, metadata=metadata, actor=actor, now=now
    )
