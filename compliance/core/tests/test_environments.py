"""Nothing crosses between live and test."""

import pytest
from django.db import connections

from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment, EnvironmentNotSet, WrongEnvironment
from compliance.core.identifiers import new_id
from compliance.stores import redis
from tenancy import services
from tenancy.models import ApiKey, Membership, Tenant
from tenancy.tests.factories import ACTOR, make_tenant


def test_rows_go_to_the_database_of_their_environment() -> None:
    tenant = make_tenant()
    with environments.use(Environment.TEST):
        ApiKey.objects.create(
            tenant_id=tenant.id, digest="d" * 64, hint="h", scopes=["agents:read"], created_at=now()
        )

        assert ApiKey.objects.count() == 1

    assert ApiKey.objects.count() == 0


def test_memberships_live_in_the_live_database_whatever_the_environment() -> None:
    with environments.use(Environment.TEST):
        assert Membership.objects.all().db == "default"

    assert "tenancy_membership" not in connections["test"].introspection.table_names()


def test_code_outside_an_environment_fails_loudly() -> None:
    token = environments._current.set(None)
    try:
        with pytest.raises(EnvironmentNotSet):
            AuditEntry.objects.count()
    finally:
        environments._current.reset(token)


@pytest.mark.parametrize("environment", list(Environment))
def test_auditing_leads_every_way_to_the_database_over_the_auditors_connection(
    environment: Environment,
) -> None:
    with environments.use(environment), environments.auditing():
        assert environments.alias() == AuditEntry.objects.all().db == environment.auditor_alias

        with environments.auditing(False):
            assert environments.alias() == environment.alias


def record_and_fail() -> None:
    with environments.atomic():
        auditlog.record(
            tenant_id=new_id(), action=AuditAction.TENANT_CREATED, actor=Actor.system("tests"), now=now()
        )
        raise ZeroDivisionError


def test_rolled_back_row_of_the_test_environment_is_gone() -> None:
    with environments.use(Environment.TEST):
        with pytest.raises(ZeroDivisionError):
            record_and_fail()

        assert AuditEntry.objects.count() == 0


def test_on_commit_waits_for_the_environments_own_transaction(committed: None) -> None:
    heard: list[str] = []

    with environments.use(Environment.TEST), environments.atomic():
        environments.on_commit(lambda: heard.append("test"))
        assert heard == []

    assert heard == ["test"]


@pytest.mark.parametrize("origin", Environment)
@pytest.mark.parametrize("elsewhere", [*Environment, None])
def test_row_is_read_on_in_its_own_database(origin: Environment, elsewhere: Environment | None) -> None:
    """A deferred column, a refreshed row, and what it leads to, wherever the code is by then."""
    tenant = make_tenant("Original")
    with environments.use(Environment.TEST):
        Tenant.objects.filter(id=tenant.id).update(enforcement="observe")
    mode = "observe" if origin is Environment.TEST else "enforce"
    with environments.use(origin):
        issued = services.create_key(tenant=Tenant.objects.get(), name="k", actor=ACTOR, now=now()).row
        row = Tenant.objects.only("id").get()
        key = ApiKey.objects.defer("name").get(id=issued.id)

    with environments.use(elsewhere or Environment.LIVE):
        if elsewhere is None:
            environments.leave()
        assert (row.enforcement, key.name, key.tenant.enforcement) == (mode, "k", mode)
        row.refresh_from_db()
        assert (row.enforcement, row._state.db) == (mode, origin.alias)


@pytest.mark.parametrize("act", ["save", "delete"])
def test_row_is_not_written_in_the_other_environment(act: str) -> None:
    tenant = make_tenant()

    with environments.use(Environment.TEST), pytest.raises(WrongEnvironment):
        getattr(tenant, act)()

    assert Tenant.objects.filter(id=tenant.id).exists()


def test_leaving_lasts_until_the_end_of_the_environment() -> None:
    with environments.use(Environment.TEST):
        environments.leave()
        with pytest.raises(EnvironmentNotSet):
            environments.current()

    assert environments.current() is Environment.LIVE


def test_redis_keys_are_apart() -> None:
    live = redis.key("risk", "x")
    with environments.use(Environment.TEST):
        test = redis.key("risk", "x")

    assert (live, test) == ("service:live:risk:x", "service:test:risk:x")
