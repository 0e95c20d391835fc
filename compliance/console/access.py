"""The rights of a console request: its environment, and the user's role in each tenant.

The tenancy middleware computes them once and stores them as `request.console`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from django.http import HttpRequest

from compliance.core.environments import Environment


class ConsoleRole(StrEnum):
    """The roles of console users; all but the operator's are per tenant (`tenancy.models.Role`)."""

    OPERATOR = "operator"
    OFFICER = "officer"
    OFFICER_WEBHOOKS = "officer_webhooks"
    AUDITOR = "auditor"
    DEVELOPER = "developer"


EVERYONE: frozenset[ConsoleRole] = frozenset(ConsoleRole)
OPERATORS = frozenset({ConsoleRole.OPERATOR})
OFFICERS = frozenset({ConsoleRole.OPERATOR, ConsoleRole.OFFICER, ConsoleRole.OFFICER_WEBHOOKS})
DEVELOPERS = frozenset({ConsoleRole.OPERATOR, ConsoleRole.DEVELOPER})
WEBHOOK_KEEPERS = DEVELOPERS | {ConsoleRole.OFFICER_WEBHOOKS}


@dataclass(frozen=True)
class ConsoleAccess:
    """The rights of one console request.

    An operator has access to every tenant; a stranger has not signed in, or may not use the console.
    """

    environment: Environment
    roles: Mapping[UUID, ConsoleRole] = field(default_factory=dict)
    is_operator: bool = False
    is_stranger: bool = False

    def may(self, allowed: Collection[ConsoleRole], tenant_id: UUID | None = None) -> bool:
        """Tell whether the user holds one of the `allowed` roles in `tenant_id`, or in any tenant if None."""
        if self.is_operator:
            return ConsoleRole.OPERATOR in allowed
        held = self.roles.values() if tenant_id is None else filter(None, [self.roles.get(tenant_id)])
        return any(role in allowed for role in held)

    def tenants_for(self, allowed: Collection[ConsoleRole]) -> frozenset[UUID] | None:
        """Return the tenants in which the user holds one of the `allowed` roles; None for every tenant."""
        if self.is_operator:
            return None if ConsoleRole.OPERATOR in allowed else frozenset()
        return frozenset(tenant for tenant, role in self.roles.items() if role in allowed)

    @property
    def shows_many_tenants(self) -> bool:
        """Return whether lists need a tenant column."""
        return self.is_operator or len(self.roles) > 1


NO_ACCESS = ConsoleAccess(Environment.LIVE, is_stranger=True)


def access_of(request: HttpRequest) -> ConsoleAccess:
    """Return the rights of a request; none if the middleware did not set any."""
    return getattr(request, "console", NO_ACCESS)
