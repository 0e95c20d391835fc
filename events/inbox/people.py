"""The people of the inbox: who acts, and who may be given an agent's events."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest

from auditlog.vocabulary import Actor
from compliance.console.display import visible
from compliance.tenancy.models import Membership, Role


@dataclass(frozen=True)
class Reviewer:
    """A person as the audit log names them, and as a page does."""

    actor_id: str
    name: str


def actor_of(request: HttpRequest) -> Actor:
    return Actor.console_user(request.user.get_username())


def reviewers_of(request: HttpRequest, tenant_id: UUID) -> list[Reviewer]:
    """Return the people who may review the tenant's events: the one who asks, and its other officers."""
    officers = Membership.objects.filter(tenant_id=tenant_id, role=Role.OFFICER, user__is_active=True)
    names = officers.order_by("user__username").values_list("user__username", flat=True)
    own = request.user.get_username()
    return [_reviewer(own), *(_reviewer(name) for name in names if name != own)]


def name_of(actor_id: str) -> str:
    """Return how a page names an actor."""
    return visible(actor_id.removeprefix("console:"))


def _reviewer(username: str) -> Reviewer:
    actor_id = Actor.console_user(username).id
    return Reviewer(actor_id, name_of(actor_id))
