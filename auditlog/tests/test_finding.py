"""Finding entries in the console: by words and by who acted, in the list and in what is exported of it."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from auditlog import services
from auditlog.disposal import erasing
from auditlog.finding import words
from auditlog.models import AuditEntry
from auditlog.sealing.tree import latest_checkpoint
from auditlog.tests.factories import ACTOR, seal_and_sign
from auditlog.tests.logs import empty_log, make_log
from auditlog.verifying.chosen_entries import ComparedEntries, compare, places_without_entry
from auditlog.vocabulary import Actor, AuditAction
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.stores import sql
from compliance.tests.console import actor_id_of, console_of, join, make_member, make_operator
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

LIST, EXPORT = "admin:auditlog_auditentry_changelist", "admin:auditlog_auditentry_export"


def make_entry(tenant: Tenant, description: str = "", **fields: Any) -> AuditEntry:
    given: dict[str, Any] = {
        "actor": Actor.system("tests"),
        "action": AuditAction.AGENT_SUSPENDED,
        "now": now(),
    }
    return services.record(tenant_id=tenant.id, description=description, **(given | fields))


def found(client: Client, **query: Any) -> set[AuditEntry]:
    """The entries on the list."""
    answer: Any = client.get(reverse(LIST), query)
    assert answer.status_code == 200
    return set(answer.context["cl"].result_list)


@pytest.mark.parametrize(
    "text",
    [
        *("odd", "ODD transf", "transfers odd", "case-4711", "4711", "grace@example.com", "été"),
        *("leaked", "o'brien", "night"),
    ],
)
def test_words_are_found_by_their_beginnings(acme: Tenant, text: str) -> None:
    make_entry(acme, "Nothing to see")
    sought = make_entry(
        acme,
        "Odd transfers, case-4711: O'Brien told grace@example.com",
        metadata={"reason": "Key leaked l'été dernier", "note": "at night"},
    )

    assert found(console_of(make_member(acme, Role.AUDITOR)), q=text) == {sought}


@pytest.mark.parametrize(
    "text", ["x", "&", "' | '", "odd & !transfers:*", "\\", "odd'::tsquery --", "\x00", " ", "a" * 5000]
)
def test_any_text_is_a_search(acme: Tenant, text: str) -> None:
    make_entry(acme, "Odd transfers")
    client = console_of(make_member(acme, Role.AUDITOR))

    answer = client.get(reverse(LIST), {"q": text})

    assert answer.status_code in (200, 302, 400)


def test_search_stays_within_the_tenants_that_one_sees(acme: Tenant) -> None:
    rival, third = make_tenant("Rival"), make_tenant("Third")
    own, theirs, other = (make_entry(tenant, "odd transfers") for tenant in (acme, rival, third))
    member = make_member(acme, Role.AUDITOR)
    join(member, third, Role.AUDITOR)

    assert found(console_of(member), q="odd") == {own, other}
    assert found(console_of(member), q="odd", tenant=str(third.id)) == {other}
    assert found(console_of(member), q=str(rival.id)) == set()
    assert found(console_of(make_operator()), q="odd") == {own, theirs, other}


def test_search_reads_the_index(acme: Tenant) -> None:
    sql.execute("SET LOCAL enable_seqscan = off")
    sql.execute("SET LOCAL enable_indexscan = off")
    entries = words.saying(AuditEntry.objects.all(), "odd transf", tenants=[acme.id])

    plan = entries.explain()

    assert "auditlog_words" in plan
    assert str(acme.id) in plan.partition("auditlog_words")[2]


def test_erased_words_are_not_found(acme: Tenant) -> None:
    entry = make_entry(acme, "odd transfers")
    seal_and_sign()
    client = console_of(make_member(acme, Role.AUDITOR))
    assert found(client, q="odd") == {entry}

    erasing.erase(entry_id=entry.id, parts=["description"], reason="GDPR 17", actor=ACTOR, now=now())

    assert found(client, q="odd") == set()


@pytest.mark.parametrize("text", ["ada", "ADA", "lovelace", "ada lovelace", "ada@"])
def test_people_are_found_by_their_names(acme: Tenant, text: str) -> None:
    ada = make_member(acme, Role.OFFICER, "ada")
    ada.first_name, ada.last_name, ada.email = "Ada", "Lovelace", "ada@example.com"
    ada.save()
    make_entry(acme)
    recent = make_entry(acme, actor=Actor.person(ada.person.id))

    assert recent in found(console_of(ada), actor=text)
    assert {entry.actor_id for entry in found(console_of(ada), actor=text)} <= {
        actor_id_of("ada"),
        "console:ada",
    }


@pytest.mark.parametrize("text", ["nobody", "system:tests2", "%", "_"])
def test_an_actor_who_did_nothing_has_no_entries(acme: Tenant, text: str) -> None:
    make_entry(acme)

    shown = found(console_of(make_member(acme, Role.AUDITOR)), actor=text)

    assert shown == set()


def test_counts_of_the_filters_are_not_made(acme: Tenant) -> None:
    entry = make_entry(acme, "odd transfers", actor=Actor.system("sweeper"))

    assert found(console_of(make_operator()), actor="sweeper", q="odd", _facets="True") == {entry}


def test_any_actor_is_found_by_its_id(acme: Tenant) -> None:
    entry = make_entry(acme, actor=Actor.system("sweeper"))

    assert found(console_of(make_member(acme, Role.AUDITOR)), actor="sweeper") == {entry}


@pytest.mark.parametrize("query", [{"q": "odd"}, {"actor": "sweeper"}])
def test_what_is_found_is_what_is_exported(acme: Tenant, query: dict[str, str]) -> None:
    make_entry(acme, "Nothing to see")
    entry = make_entry(acme, "odd transfers", actor=Actor.system("sweeper"))
    seal_and_sign()
    client = console_of(make_member(acme, Role.AUDITOR))

    answer: Any = client.get(reverse(EXPORT, args=["jsonl"]), query)
    header, *records = map(json.loads, answer.getvalue().splitlines())

    assert [record["entry"]["id"] for record in records[:-1]] == [str(entry.id)]
    assert header["filters"] == {name: [value] for name, value in query.items()}


# --- What the comparison with the tree says of each way to tamper with the log --------------------


BEFORE, CHOSEN, AFTER = 300, 300, 300  # the chosen entries lie in three tiles
ROW = "UPDATE auditlog_auditentry SET {} WHERE id = (SELECT entry_id FROM auditlog_leaf WHERE index = 400)"
TILE = (
    "UPDATE auditlog_tile SET hashes = set_byte(hashes, {}, get_byte(hashes, {}) # 1)"
    " WHERE level = {} AND index = {}"
)


@pytest.fixture(scope="module")
def log(owned_world_transaction: None) -> list[AuditEntry]:
    """The chosen entries, of one tenant, between those of others; the owner has disabled the triggers."""
    empty_log()
    make_log(BEFORE)
    chosen = make_log(CHOSEN)
    make_log(AFTER)
    return chosen


@pytest.mark.parametrize(
    ("statements", "found", "missing"),
    [
        ([], ComparedEntries(CHOSEN), 0),
        ([ROW.format("description = 'x'")], ComparedEntries(CHOSEN - 1, changed=1), 0),
        ([ROW.format("actor_kind = 'person'")], ComparedEntries(CHOSEN - 1, changed=1), 0),
        ([ROW.format("created_at = created_at + interval '1 s'")], ComparedEntries(CHOSEN - 1, changed=1), 0),
        (
            ["UPDATE auditlog_leaf SET salts = '' WHERE index = 400"],
            ComparedEntries(CHOSEN - 1, changed=1),
            0,
        ),
        (
            ["DELETE FROM auditlog_auditentry WHERE id IN"
             " (SELECT entry_id FROM auditlog_leaf WHERE index IN (400, 599))"],
            ComparedEntries(CHOSEN - 2),
            2,
        ),
        (
            ["DELETE FROM auditlog_auditentry WHERE id IN"
             " (SELECT entry_id FROM auditlog_leaf WHERE index = 400)",
             "DELETE FROM auditlog_leaf WHERE index = 400"],
            ComparedEntries(CHOSEN - 1),
            1,
        ),
        ([TILE.format(144 * 32, 144 * 32, 0, 1)], ComparedEntries(CHOSEN - 1, changed=1, is_rooted=False), 0),
        ([TILE.format(0, 0, 0, 1)], ComparedEntries(CHOSEN, is_rooted=False), 0),
        ([TILE.format(32, 32, 1, 0)], ComparedEntries(CHOSEN, is_rooted=False), 0),
        (["DELETE FROM auditlog_tile WHERE level = 1"], ComparedEntries(CHOSEN, is_rooted=False), 0),
    ],
)  # fmt: skip
def test_comparison_counts_what_is_not_as_sealed(
    log: list[AuditEntry], statements: list[str], found: ComparedEntries, missing: int
) -> None:
    newest = latest_checkpoint()
    assert newest is not None
    for statement in statements:
        sql.execute(statement)

    assert compare(AuditEntry.objects.for_tenant(log[0].tenant_id), newest) == found
    around: dict[str, Any] = {"after": log[0].id, "before": new_id(), "size": newest.size}
    assert places_without_entry(**around, minimum_index=0) == missing
    assert places_without_entry(**around, minimum_index=BEFORE + CHOSEN) == 0


def test_entries_after_the_checkpoint_are_not_compared(log: list[AuditEntry]) -> None:
    newest = latest_checkpoint()
    assert newest is not None
    make_log(5, tenant_id=log[0].tenant_id)

    entries = AuditEntry.objects.for_tenant(log[0].tenant_id)

    assert compare(entries, newest) == ComparedEntries(CHOSEN)
    assert compare(entries, seal_and_sign()) == ComparedEntries(CHOSEN + 5)
