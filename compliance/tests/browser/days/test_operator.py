"""An operator's day: API keys, tenants, people, and how the service is."""

import pytest
import requests
from playwright.sync_api import Page, expect

from compliance.tests.browser.days.conftest import Office
from compliance.tests.browser.steps import act, button, expect_told, follow, press, save
from compliance.tests.browser.world import OPERATOR
from compliance.tests.console import actor_id_of, make_staff
from compliance.tests.waiting import eventually
from tenancy.models import ApiKey, Membership, Role, Tenant

pytestmark = pytest.mark.browser


@pytest.fixture
def page(office: Office) -> Page:
    found = office.world.browser_of(OPERATOR)
    found.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return found


def status_of(office: Office, secret: str) -> int:
    headers = {"Authorization": f"Bearer {secret}"}
    return requests.get(f"{office.world.address}/v1/agents", headers=headers, timeout=30).status_code


def test_operator_makes_a_key_and_revokes_it(office: Office, page: Page) -> None:
    follow(page, "tenancy_apikey_add")
    page.get_by_label("Tenant").select_option(str(office.tenant.pk))
    page.get_by_label("Name").fill("nightly import")
    page.locator("main [name=preset]").select_option(index=1)
    expect(page.locator("input[name=scopes]:checked").first).to_be_visible()
    page.locator("input[name=scopes][value='agents:read']").check()
    save(page)
    secret = page.locator("#secret").input_value()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == secret
    assert secret.startswith("service_live_")
    assert status_of(office, secret) == 200
    page.reload()
    expect_told(page, "Already done")
    assert secret not in page.content()

    key = ApiKey.objects.get(tenant_id=office.tenant.pk)
    assert office.entry("api_key.created").affected_id == str(key.pk)
    follow(page, "tenancy_apikey_change", key.pk)
    act(page, "Revoke key", "the import moved")
    expect_told(page, "is revoked; requests with it are refused from now on.")
    assert eventually(lambda: status_of(office, secret) == 401)
    entry = office.entry("api_key.revoked")
    assert (entry.actor_id, (entry.metadata or {})["reason"]) == (actor_id_of(OPERATOR), "the import moved")


def test_operator_makes_a_tenant_and_a_membership(office: Office, page: Page) -> None:
    user, name = make_staff(f"lee-{office.number}"), f"Westwind {office.number}"

    follow(page, "tenancy_tenant_add")
    page.get_by_label("Name").fill(name)
    save(page)
    tenant = Tenant.objects.get(name=name)
    follow(page, "tenancy_membership_add")
    page.locator(".select2-selection").click()
    page.locator(".select2-search__field").fill(user.username)
    page.get_by_role("option", name=user.username).click()
    page.locator("main [name=tenant]").select_option(str(tenant.pk))
    page.locator("main [name=role]").select_option(Role.OFFICER.value)
    save(page)

    expect_told(page, user.username)
    assert Membership.objects.get(user=user).tenant_id == tenant.pk


def test_operator_looks_how_the_service_is(page: Page) -> None:
    follow(page, "console_system")

    rows = page.get_by_role("main").locator("tbody tr")
    for check in ("database", "redis", "hsm"):
        expect(page.get_by_role("cell", name=check, exact=True)).to_be_visible()
    quick = rows.count()
    press(page, button(page, "Run the doctor"))

    expect(page.get_by_role("cell", name="privileges", exact=True)).to_be_visible()
    assert rows.count() > quick


@pytest.mark.parametrize("role", [Role.OFFICER, Role.AUDITOR, Role.DEVELOPER])
def test_others_do_not_reach_the_operators_pages(office: Office, role: Role) -> None:
    page = office.browser(role)

    for name in ("console_system", "auth_user_changelist", "tenancy_apikey_add"):
        follow(page, name)
        expect(page.get_by_role("heading", name="Not yours to see")).to_be_visible()
