"""Granting and withdrawing memberships, which are stored in the live database."""

from datetime import datetime
from typing import Any
from uuid import UUID

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.environments import Environment
from tenancy.models import Membership, Role
from tenancy.services import get_tenant


def grant(*, user: Any, tenant_id: UUID, role: Role, actor: Actor, now: datetime) -> Membership:
    """Give `user` a role in a tenant, which replaces any other there. Raises `TenantNotFound`."""
    with environments.use(Environment.LIVE), environments.atomic():
        tenant = get_tenant(tenant_id=tenant_id)
        membership, _ = Membership.objects.update_or_create(
            user=user, tenant_id=tenant.id, defaults={"role": role}
        )
        _record(membership, f"{user.get_username()} is now {role.label} of {tenant.name}", role, actor, now)
    return membership


def withdraw(*, membership: Membership, actor: Actor, now: datetime) -> None:
    """Remove the membership; from the next request on, the person sees nothing of the tenant."""
    with environments.use(Environment.LIVE), environments.atomic():
        username = membership.user.get_username()
        _record(membership, f"{username} is no longer a member", None, actor, now)
        membership.delete()


def _record(membership: Membership, description: str, role: Role | None, actor: Actor, now: datetime) -> None:
    auditlog.record(
        of=membership,
        action=AuditAction.MEMBERSHIP_CHANGED,
        description=description,
        metadata={
            "person": str(membership.user.person.id),
            "username": membership.user.get_username(),
            "role": role.value if role else None,
        },
        actor=actor,
        now=now,
    )
