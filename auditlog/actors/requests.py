"""The actors of requests, and the downloads that people and API keys make."""

from typing import Any
from uuid import UUID

from django.db.models import Model
from django.http import HttpRequest

from auditlog import services
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from compliance.api.rest.requests import ApiRequest
from compliance.core import environments
from compliance.core.clock import now


def actor_of(request: HttpRequest) -> Actor:
    """Return the signed-in user as an actor; the one way from a console request to an actor."""
    user: Any = request.user
    return Actor.person(user.person.id)


def caller_of(request: ApiRequest) -> dict[str, Any]:
    """Return the arguments that every service takes: tenant, actor and now."""
    return {"tenant_id": request.auth.tenant_id, "actor": Actor.api_key(request.auth.id), "now": now()}


def user_of(request: HttpRequest, row: Any) -> dict[str, Any]:
    """Return what `caller_of` does, of the signed-in user who acts on a tenant's row."""
    return {"tenant_id": row.tenant_id, "actor": actor_of(request), "now": now()}


def record_taken(
    *,
    actor: Actor,
    action: AuditAction,
    description: str,
    of: Model | None = None,
    tenant_id: UUID = SERVICE_TENANT_ID,
    **metadata: Any,
) -> None:
    """Audit that somebody takes a file of a tenant's row away; call it before the file is sent.

    `tenant_id` is needed only for a file `of` no row.
    """
    with environments.atomic():
        services.record(
            of=of,
            tenant_id=tenant_id,
            action=action,
            description=description,
            metadata=metadata,
            actor=actor,
            now=now(),
        )
