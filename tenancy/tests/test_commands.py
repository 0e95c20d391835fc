"""The operators' commands for tenants and keys."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from auditlog.models import AuditEntry
from compliance.api.gate import Scope
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from tenancy.services import get_tenant
from tenancy.tests.factories import make_tenant


def run(*arguments: str) -> Any:
    out = StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_tenant_create_prints_id_and_name() -> None:
    made = run("tenant_create", "--name", "Acme")

    assert set(made) == {"id", "name"}
    assert made["name"] == "Acme"


@pytest.mark.parametrize("environment", ["live", "test"])
def test_created_key_works_until_revoked(api: ApiClient, environment: str) -> None:
    tenant = run("tenant_create", "--name", "Acme")
    made = run("key_create", "--tenant", tenant["id"], "--environment", environment, "--name", "ci")

    assert made["key"].startswith(f"service_{environment}_")
    assert made["scopes"] == [scope.value for scope in Scope]
    assert api.as_key(made["key"]).get("/v1/agents").status_code == 200

    run("key_revoke", made["id"], "--environment", environment)

    assert api.as_key(made["key"]).get("/v1/agents").status_code == 401
    with environments.use(Environment(environment)):
        told = AuditEntry.objects.about(made["id"]).values_list("event_type", flat=True)
        assert sorted(told) == ["api_key.created", "api_key.revoked"]


def test_rolled_key_leaves_both_usable_for_the_overlap(api: ApiClient) -> None:
    tenant = make_tenant()
    old = run("key_create", "--tenant", str(tenant.id), "--environment", "live", "--scopes", "agents:read")

    new = run("key_roll", old["id"], "--environment", "live", "--overlap-hours", "1")

    assert api.as_key(old["key"]).get("/v1/agents").status_code == 200
    assert api.as_key(new["key"]).get("/v1/agents").status_code == 200
    assert api.as_key(new["key"]).get("/v1/audit-log").status_code == 403


@pytest.mark.parametrize("environment", list(Environment))
def test_tenant_enforcement_sets_the_mode_of_one_environment(environment: Environment) -> None:
    tenant = make_tenant()
    command = ("tenant_enforcement", str(tenant.id), "--environment", environment.value, "--reason", "pilot")

    printed = [run(*command, mode)["enforcement"] for mode in ("observe", "observe", "enforce", "observe")]

    assert printed == ["observe", "observe", "enforce", "observe"]
    for one in Environment:
        with environments.use(one):
            found = get_tenant(tenant_id=tenant.id).enforcement
            assert found == ("observe" if one is environment else "enforce")
    with environments.use(environment):
        told = AuditEntry.objects.about(tenant.id).of_type("tenant.enforcement_changed")
        changes = [entry.metadata or {} for entry in told.order_by("created_at", "id")]
    assert [(one["before"], one["after"], one["reason"]) for one in changes] == [
        ("enforce", "observe", "pilot"),
        ("observe", "enforce", "pilot"),
        ("enforce", "observe", "pilot"),
    ]


def test_key_list_shows_no_secret() -> None:
    tenant = make_tenant()
    made = run("key_create", "--tenant", str(tenant.id), "--environment", "live")

    listed = run("key_list", "--tenant", str(tenant.id))

    assert [row["id"] for row in listed] == [made["id"]]
    assert made["key"] not in json.dumps(listed)


def test_lists_without_a_tenant_are_of_all() -> None:
    tenants = [make_tenant(), make_tenant()]
    made = [
        run("key_create", "--tenant", str(tenant.id), "--environment", "test")["id"] for tenant in tenants
    ]

    keys, listed = run("key_list"), run("tenant_list")

    assert {row["id"] for row in keys} >= set(made)
    assert {row["id"] for row in listed} >= {str(tenant.id) for tenant in tenants}


def test_list_is_a_table_without_python_notation() -> None:
    tenant = make_tenant()
    run(
        "key_create",
        "--tenant",
        str(tenant.id),
        "--environment",
        "live",
        "--scopes",
        "events:read,audit:read",
    )
    printed = StringIO()

    call_command("key_list", "--tenant", str(tenant.id), stdout=printed)

    header, row = printed.getvalue().splitlines()
    assert header.index("scopes") == row.index("events:read, audit:read")
    assert "None" not in row
    assert "datetime" not in row


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("key_create", "--tenant", "0" * 32, "--environment", "live"), 3),
        (("key_revoke", "0" * 32, "--environment", "live"), 3),
        (("tenant_create", "--name", " "), 2),
        (("tenant_enforcement", "0" * 32, "observe", "--environment", "test", "--reason", "x"), 3),
    ],
)
def test_refusals_have_exit_codes(arguments: tuple[str, ...], code: int) -> None:
    with pytest.raises(SystemExit) as stop:
        call_command(*arguments, stderr=StringIO())

    assert stop.value.code == code


def test_unknown_scope_is_a_usage_error() -> None:
    tenant = make_tenant()

    with pytest.raises(SystemExit) as stop:
        call_command(
            "key_create", "--tenant", str(tenant.id), "--environment", "live", "--scopes", "root",
            stderr=StringIO(),
        )  # fmt: skip

    assert stop.value.code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("key_create", "--tenant", "0" * 32, "--environment", "live", "--expires-in-days", "0"),
        ("key_create", "--tenant", "0" * 32, "--environment", "live", "--expires-in-days", "-1"),
        ("key_create", "--tenant", "0" * 32, "--environment", "live", "--expires-in-days", "99999999999"),
        ("key_roll", "0" * 32, "--environment", "live", "--overlap-hours", "-5"),
        ("key_roll", "0" * 32, "--environment", "live", "--overlap-hours", "99999999999999"),
        ("key_pool_fill", "--size", "-1"),
    ],
)
def test_numbers_out_of_bounds_are_usage_errors(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="is no whole number from"):
        call_command(*arguments)
