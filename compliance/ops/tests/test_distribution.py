"""Where tables lie on Citus: each is listed once, and `distribute` lays them there."""

import io
from collections import Counter

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connections

from agents.tests.factories import make_agent
from compliance.ops.distribution import laying
from compliance.ops.distribution.placements import (
    COLUMN,
    DISTRIBUTED,
    LOCAL,
    LOCAL_TRIGGERS,
    MANAGED,
    REFERENCE,
)
from compliance.stores import sql
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.citus import not_on_citus, on_citus

without_citus = not_on_citus("tables are distributed already")


def test_each_table_has_its_place() -> None:
    models = apps.get_models(include_auto_created=True)

    listed = Counter([*DISTRIBUTED, *REFERENCE, *MANAGED, *LOCAL])

    without_model = {"django_migrations", *MANAGED}
    assert set(listed) == {model._meta.db_table for model in models} | without_model
    assert max(listed.values()) == 1
    assert all(LOCAL.values())


def test_distributed_tables_have_a_tenant() -> None:
    columns = {
        model._meta.db_table: {field.column for field in model._meta.concrete_fields}
        for model in apps.get_models()
    }

    assert [table for table in DISTRIBUTED if COLUMN not in columns[table]] == []


@without_citus
def test_plain_postgresql_is_refused() -> None:
    with pytest.raises(CommandError, match="no Citus coordinator"):
        call_command("distribute", database="default")


@without_citus
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
    (one,) = sql.query("SELECT pg_get_indexdef('certificates_one_active_of_an_agent'::regclass)")
    assert one[0].endswith("(agent_id, tenant_id) WHERE ((status)::text = 'active'::text)")


def primary_key(table: str) -> list[str]:
    found = sql.query(
        "SELECT a.attname::text FROM pg_constraint k"
        " CROSS JOIN unnest(k.conkey) WITH ORDINALITY AS key (num, n)"
        " JOIN pg_attribute a ON (a.attrelid, a.attnum) = (k.conrelid, key.num)"
        " WHERE k.contype = 'p' AND k.conrelid = %s::regclass ORDER BY key.n",
        [table],
    )
    return [name for (name,) in found]


@on_citus
def test_a_second_run_finds_nothing_to_do(committed: None) -> None:
    told = io.StringIO()

    for alias in ("default", "test"):
        call_command("distribute", database=alias, stdout=told)

    assert told.getvalue() == ""


@on_citus
def test_tables_lie_where_the_list_says() -> None:
    found = sql.query(
        "SELECT logicalrelid::regclass::text, partmethod::text, colocationid FROM pg_dist_partition p"
        " JOIN pg_class c ON c.oid = p.logicalrelid WHERE NOT c.relispartition"
    )

    divided = {table: together for table, method, together in found if method == "h"}
    assert set(divided) == set(DISTRIBUTED)
    assert len(set(divided.values())) == 1
    assert {table for table, method, _ in found if method == "n"} == {*REFERENCE, *MANAGED}


@on_citus
def test_entries_of_before_do_not_stay_on_the_coordinator(
    owned: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = "auditlog_before"
    monkeypatch.setattr(laying, "DISTRIBUTED", (*DISTRIBUTED, table))
    monkeypatch.setitem(LOCAL_TRIGGERS, table, "auditlog_enqueue")
    sql.execute(f"CREATE TABLE {table} (id integer, tenant_id uuid)")
    sql.execute(f"INSERT INTO {table} SELECT n, gen_random_uuid() FROM generate_series(1, 9) n")  # noqa: S608
    for event, each in (("INSERT", "ROW"), ("TRUNCATE", "STATEMENT")):
        name = "auditlog_enqueue" if event == "INSERT" else "auditlog_no_truncate"
        sql.execute(
            f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH {each}"
            " EXECUTE FUNCTION auditlog_refuse_change()"
        )

    with connections["default"].cursor() as cursor:
        for statement in laying.missing("default"):
            cursor.execute(statement)

    assert sql.query(f"SELECT count(*) FROM {table}") == [(9,)]  # noqa: S608
    assert sql.query("SELECT pg_relation_size(%s::regclass)", [table]) == [(0,)]
    assert sql.query(
        "SELECT tgname::text FROM pg_trigger WHERE tgrelid = %s::regclass AND tgname LIKE 'audit%%'", [table]
    ) == [("auditlog_no_truncate",)]
