"""An office of each test's own: nothing that another test leaves behind is in sight."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.tests.factories import make_certificate
from compliance.core.environments import Environment
from compliance.tests.browser.world import World
from compliance.tests.console import actor_id_of, make_member, populate
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

NUMBERS = count(1)


@dataclass
class Office:
    """A tenant, and browsers of people who have a role in it."""

    world: World
    tenant: Tenant
    number: int = field(default_factory=lambda: next(NUMBERS))
    people: dict[str, User] = field(default_factory=dict)

    def browser(self, role: Role) -> Page:
        """A browser in which somebody of the role is signed in, on no page yet."""
        if role not in self.people:
            self.people[role] = make_member(self.tenant, role, f"{role.value}-{self.number}")
        return self.world.browser_of(self.people[role])

    def actor_id(self, role: Role) -> str:
        return actor_id_of(self.people[role].username)

    def agent(self, name: str) -> Agent:
        """An agent with a certificate."""
        agent = make_agent(self.tenant, name=name)
        make_certificate(agent)
        return agent

    def rows(self) -> dict[str, Any]:
        """A row of every kind."""
        return populate(self.tenant, Environment.LIVE, f"payments-{self.number}")

    def entry(self, event_type: str) -> AuditEntry:
        """The newest entry of the kind in the audit log."""
        found = AuditEntry.objects.for_tenant(self.tenant.id).of_type(event_type)
        return found.order_by("-created_at", "-id")[0]


@pytest.fixture
def office(committed: None, quiet: None, world: World) -> Office:
    found = Office(world, make_tenant("Sudlicht Versand"))
    found.tenant.refresh_from_db()
    return found
