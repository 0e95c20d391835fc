"""Who a console request acts for: an environment, and a role in each of the user's tenants.

Decided once per request by the tenancy's middleware; hangs on `request.console`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from django.http import HttpRequest

from compliance.environments import Environment


class ConsoleRole(StrEnum):
    """What a console user is; all but the operator's are held per tenant (`tenancy.models.Role`)."""

    OPERATOR = "operator"
    OFFICER = "officer"
    AUDITOR = "auditor"
    DEVELOPER = "developer"


EVERYONE: frozenset[ConsoleRole] = frozenset(ConsoleRole)
OPERATORS = frozenset({ConsoleRole.OPERATOR})
OFFICERS = frozenset({ConsoleRole.OPERATOR, ConsoleRole.OFFICER})
DEVELOPERS = frozenset({ConsoleRole.OPERATOR, ConsoleRole.DEVELOPER})


@dataclass(frozen=True)
class ConsoleAccess:
    """The rights behind one console request; an operator holds every role in every tenant."""

    environment: Environment
    roles: Mapping[UUID, ConsoleRole] = field(default_factory=dict)
    is_operator: bool = False

    def may(self, allowed: Collection[ConsoleRole], tenant_id: UUID | None = None) -> bool:
        """Whether one of `allowed` is held in `tenant_id`, or anywhere at all when no tenant is named."""
        if self.is_operator:
            return ConsoleRole.OPERATOR in allowed
        held = self.roles.values() if tenant_id is None else filter(None, [self.roles.get(tenant_id)])
        return any(role in allowed for role in held)

    def tenants_for(self, allowed: Collection[ConsoleRole]) -> frozenset[UUID] | None:
        """The tenants where one of `allowed` is held; None means every tenant."""
        if self.is_operator:
            return None if ConsoleRole.OPERATOR in allowed else frozenset()
        return frozenset(tenant for tenant, role in self.roles.items() if role in allowed)

    @property
    def shows_many_tenants(self) -> bool:
        """Whether lists need a column that tells tenants apart."""
        return self.is_operator or len(self.roles) > 1


NO_ACCESS = ConsoleAccess(Environment.LIVE)


def access_of(request: HttpRequest) -> ConsoleAccess:
    """The request's access; none at all where no middleware granted any."""
    return getattr(request, "console", NO_ACCESS)
