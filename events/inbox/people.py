"""The people who may be given an agent's events."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest

from auditlog.actors.names import name_of
from auditlog.actors.requests import actor_of
from auditlog.vocabulary import Actor
from compliance.console.display import visible
from compliance.tenancy.models import Membership, Role


@dataclass(frozen=True)
class Reviewer:
    """A person as the audit log names them, and as a page does."""

    actor_id: str
    name: str


def reviewers_of(request: HttpRequest, tenant_id: UUID) -> list[Reviewer]:
    """Return the people who may review the tenant's events: the one who asks, and its other officers."""
    own = Reviewer(actor_of(request).id, visible(name_of(request.user)))
    memberships = Membership.objects.filter(tenant_id=tenant_id, role=Role.OFFICER, user__is_active=True)
    officers = [one.user for one in memberships.order_by("user__username").select_related("user__person")]
    others = [Reviewer(Actor.person(user.person.id).id, visible(name_of(user))) for user in officers]
    return [own, *(other for other in others if other != own)]
