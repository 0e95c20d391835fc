"""Two tenants with a row of every kind in both environments, people of each role, and browsers for them."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, Page

from auditlog.models import AuditEntry
from auditlog.tests.factories import seal_and_sign
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.console import console_of, make_member, make_operator, make_staff, populate
from compliance.tests.url_table import PAGES
from people.tests.authenticators import show_again
from tenancy.models import Membership, Role, Tenant

OPERATOR, NONE = "operator", "none"
# A busy machine is slow, which is no finding.
WAIT_MILLISECONDS = 30_000
PASSWORD = "correct horse battery staple"


@dataclass
class World:
    """The rows by environment, the people by role, and the address of the console."""

    address: str
    chromium: Browser
    tenant: Tenant
    people: dict[str, User]
    rows: dict[Environment, dict[str, Any]]
    complaints: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    @classmethod
    def create(cls, address: str, chromium: Browser, tenant: Tenant) -> "World":
        people = {role.value: make_member(tenant, role) for role in Role}
        people |= {OPERATOR: make_operator(OPERATOR), NONE: make_staff(NONE)}
        for person in people.values():
            person.set_password(PASSWORD)
            person.save(update_fields=["password"])
        rows = {environment: populate(tenant, environment, "shown") for environment in Environment}
        for environment in Environment:
            with environments.use(environment):
                seal_and_sign()
                rows[environment]["auditlog_auditentry"] = AuditEntry.objects.for_tenant(tenant.id).first()
        mine = {
            "auth_user": people[Role.AUDITOR],
            "tenancy_membership": Membership.objects.filter(tenant_id=tenant.id).first(),
        }
        return cls(address, chromium, tenant, people, {one: {**rows[one], **mine} for one in rows})

    def row(self, page: str, environment: Environment = Environment.LIVE) -> Any:
        """Return the row of a page: the tenant's, or any that the service has."""
        with environments.use(environment):
            row = self.rows[environment].get(page) or PAGES[page].model._default_manager.order_by("pk").last()
        assert row is not None, f"no row of {page}: add one to compliance.tests.console.populate"
        return row

    def browser_of(self, who: str | User | None, environment: Environment = Environment.LIVE) -> Page:
        """Return a browser in which a person, or one of a role, is signed in (None: nobody).

        It notes complaints, and is closed at the end of the test, or of the module whose fixture opened it.
        """
        context = self.chromium.new_context(base_url=self.address, reduced_motion="reduce")
        self.contexts.append(context)
        context.set_default_timeout(WAIT_MILLISECONDS)
        if who is not None:
            self._sign_in(context, who if isinstance(who, User) else self.people[who], environment)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on("console", lambda said: self._note(page, said.type, said.text))
        return page

    def signed_in(self, role: str) -> Page:
        """Return a browser in which a person of the role has signed in as people do, by password alone."""
        page = self.browser_of(None)
        show_password(page, self.people[role].get_username())
        page.wait_for_url("**/admin/live/")
        return page

    def close_browsers(self, opened_before: int) -> None:
        """Close the browsers that were opened after the first `opened_before`: their scripts keep asking."""
        while len(self.contexts) > opened_before:
            self.contexts.pop().close()

    def _sign_in(self, context: BrowserContext, user: User, environment: Environment) -> None:
        client = console_of(user, environment)
        show_again(client, user)
        cookie = client.cookies["sessionid"]
        context.add_cookies([{"name": "sessionid", "value": cookie.value, "url": self.address}])

    def _note(self, page: Page, kind: str, text: str) -> None:
        # Chromium itself reports a page's own status of 4xx in these words.
        if kind == "error" and "the server responded with a status of 4" not in text:
            self.complaints.append(f"{page.url}: {text}")


def show_password(page: Page, username: str, password: str = PASSWORD) -> None:
    """Fill in the sign-in page and send it."""
    page.goto("/admin/live/login/")
    page.get_by_label("Username").fill(username)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
