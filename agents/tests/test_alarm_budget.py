"""Setting and showing the alarm budget of an agent."""

from typing import Any

from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from compliance.api.gate import Scope
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from tenancy import services as tenancy
from tenancy.models import Tenant
from tenancy.tests.factories import make_key

NEW = {"name": "bot", "model_hash": "sha256:ab"}


def budgets(shown: dict[str, Any]) -> tuple[float | None, float]:
    return shown["alarm_budget"], shown["effective_alarm_budget"]


def test_budget_is_set_changed_and_left_to_the_tenant(client: ApiClient, tenant: Tenant) -> None:
    made = client.post("/v1/agents", NEW).json()["data"]
    given = client.post("/v1/agents", {**NEW, "alarm_budget": 0.002}).json()["data"]
    path = f"/v1/agents/{made['id']}"
    own = client.patch(path, {"alarm_budget": 0.05}).json()["data"]
    tenancy.change_setting(
        name="alarm_budget",
        tenant_id=tenant.id,
        value=0.003,
        reason="too many",
        actor=Actor.system("tests"),
        now=now(),
    )

    assert budgets(made) == (None, 0.01)
    assert budgets(given) == (0.002, 0.002)
    assert budgets(own) == budgets(client.get(path).json()["data"]) == (0.05, 0.05)
    assert budgets(client.patch(path, {"alarm_budget": None}).json()["data"]) == (None, 0.003)
    told = AuditEntry.objects.about(made["id"]).of_type("agent.updated").order_by("created_at", "id")
    assert [(entry.metadata or {})["alarm_budget"] for entry in told] == [
        {"before": None, "after": 0.05},
        {"before": 0.05, "after": None},
    ]
    told = AuditEntry.objects.about(tenant.id).of_type("tenant.alarm_budget_changed")
    assert told.get().metadata == {"before": 0.01, "after": 0.003, "reason": "too many"}


def test_whose_budget_one_may_not_set(api: ApiClient, tenant: Tenant) -> None:
    mine = make_agent(tenant)
    body = {"alarm_budget": 0.002}
    without = [scope.value for scope in Scope if scope is not Scope.AGENTS_ENFORCEMENT]
    weak = api.as_key(make_key(tenant, scopes=without))

    assert weak.patch(f"/v1/agents/{mine.id}", body).status_code == 403
    assert weak.post("/v1/agents", {**NEW, **body}).status_code == 403
