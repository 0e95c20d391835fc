"""Where tables lie on Citus: each is listed once, and `distribute` lays them there."""

from collections import Counter

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connections

from agents.tests.factories import make_agent
from compliance.stores import sql
from ops.distribution import laying
from ops.distribution.placements import COLUMN, DISTRIBUTED, LOCAL, MANAGED, REFERENCE
from tenancy.tests.factories import make_tenant


def test_each_table_with_a_tenant_has_its_place() -> None:
    tables = {model._meta.db_table: model._meta for model in apps.get_models(include_auto_created=True)}
    local = [table for names in LOCAL.values() for table in names]

    listed = Counter([*DISTRIBUTED, *REFERENCE, *MANAGED, *local])

    of_tenants = {
        table for table, meta in tables.items() if COLUMN in {field.column for field in meta.concrete_fields}
    }
    assert {*DISTRIBUTED, *local} <= of_tenants <= listed.keys() <= {*tables, *MANAGED}
    assert max(listed.values()) == 1


def test_plain_postgresql_is_refused() -> None:
    with pytest.raises(CommandError, match="no Citus coordinator"):
        call_command("distribute", database="default")


def test_keys_end_in_the_tenant_and_foreign_keys_go(owned: None) -> None:
    make_agent(make_tenant())
    wanted = {"divided": DISTRIBUTED, "copied": REFERENCE}
    taken = laying.prepare("default", **wanted)
    with connections["default"].cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for statement in taken:
            cursor.execute(statement)

    assert len(taken) > len(DISTRIBUTED)
    assert laying.prepare("default", **wanted) == []
    assert primary_key("agents_agent") == ["id", COLUMN]
    (one,) = sql.query("SELECT pg_get_indexdef('certificates_one_current_of_an_agent'::regclass)")
    assert "(agent_id, tenant_id) WHERE (((status)::text = 'active'::text)" in one[0]


def primary_key(table: str) -> list[str]:
    found = sql.query(
        "SELECT a.attname::text FROM pg_constraint k"
        " CROSS JOIN unnest(k.conkey) WITH ORDINALITY AS key (num, n)"
        " JOIN pg_attribute a ON (a.attrelid, a.attnum) = (k.conrelid, key.num)"
        " WHERE k.contype = 'p' AND k.conrelid = %s::regclass ORDER BY key.n",
        [table],
    )
    return [name for (name,) in found]
