"""The audit log in the console: seals, erased parts, proof and verification, the tree's page."""

import csv
import io
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from auditlog.disposal import erasing
from auditlog.models import AuditEntry, Leaf, LogKey, PendingEntry, SignedHead, WitnessState
from auditlog.sealing import sealer
from auditlog.sealing.tree import head
from auditlog.submitting import gathering
from auditlog.tests.factories import ACTOR, make_entry, make_log_key, seal_and_sign
from auditlog.tests.witnessed import NOBODY, unguarded
from auditlog.tlog.policy import Policy
from auditlog.vocabulary import Actor, ActorKind, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.stores import sql
from compliance.tests.client import ApiClient
from compliance.tests.console import address_in, console_of, make_member, make_operator, make_staff
from tenancy import services as tenancy
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_key, make_tenant

BOTH = pytest.mark.parametrize("environment", list(Environment))
PAGES = pytest.mark.parametrize("page", ["proof", "verify"])
LIST, TREE = "admin:auditlog_auditentry_changelist", "admin:auditlog_treehead_changelist"
LONG = "w" * 255


def make_sealed_entry(tenant: Tenant, **fields: Any) -> AuditEntry:
    make_log_key()
    entry = make_entry(tenant.id, **({"metadata": None} | fields))
    seal_and_sign()
    return entry


def url_of(entry: AuditEntry, page: str = "change") -> str:
    return reverse(f"admin:auditlog_auditentry_{page}", args=[entry.pk])


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def index_of(entry: AuditEntry) -> int:
    return Leaf.objects.get(entry_id=entry.id).index


def test_seal_follows_an_entry_from_the_queue_to_the_witnesses(acme: Tenant, trusted: Policy) -> None:
    client, entry = console_of(make_member(acme, Role.OFFICER)), make_entry(acme.id)

    seals = []
    for step in (
        str,
        sealer.seal_queued,
        lambda: sealer.sign_head(now=now()),
        lambda: gathering.gather(now=now()),
    ):
        step()
        seals.append((shown(client, reverse(LIST)), shown(client, url_of(entry))))

    index, size = index_of(entry), head().size
    words = (
        "waiting",
        f"sealed · #{index}, unsigned",
        f"sealed · #{index} of {size}",
        f"witnessed · #{index} of {size}",
    )
    for pages, expected in zip(seals, words, strict=True):
        assert all(expected in html for html in pages)


def test_erased_parts_show_when_and_by_which_entry(acme: Tenant) -> None:
    entry = make_sealed_entry(acme)
    parts = ["actor_id", "description"]
    later = now() + timedelta(minutes=1)
    erasing.erase(entry_id=entry.id, parts=parts, reason="GDPR 17", actor=ACTOR, now=later)
    record = AuditEntry.objects.get(event_type=AuditAction.AUDIT_ERASED, affected_id=str(entry.id))
    client = console_of(make_member(acme, Role.OFFICER))

    page, listed, recorded = (
        shown(client, address) for address in (url_of(entry), reverse(LIST), url_of(record))
    )

    assert page.count(url_of(record)) == 2
    assert page.count(f"{later:%Y-%m-%d %H:%M:%S} UTC") == 2
    assert "grace" not in page.lower()
    assert "erased" in listed
    assert url_of(entry) in recorded


@BOTH
def test_proof_is_the_file_of_the_api(acme: Tenant, environment: Environment, api: ApiClient) -> None:
    with environments.use(environment):
        entry = make_sealed_entry(acme)
        secret = make_key(tenancy.get_tenant(tenant_id=acme.id))
        leaf = Leaf.objects.get(entry_id=entry.id)
    client = console_of(make_member(acme, Role.OFFICER), environment)

    proof = client.get(url_of(entry, "proof"))

    given = api.as_key(secret).get(f"/v1/audit-log/{entry.id}/proof")
    assert proof.content == given.content
    assert proof["Content-Disposition"] == given["Content-Disposition"]
    assert proof["Content-Type"] == given["Content-Type"]
    assert f"\nindex {leaf.index}\n".encode() in proof.content


def test_proof_of_a_waiting_entry_leads_back_to_it(acme: Tenant) -> None:
    entry = make_entry(acme.id)
    client = console_of(make_member(acme, Role.OFFICER))

    answer = client.get(url_of(entry, "proof"), follow=True)

    assert answer.redirect_chain == [(url_of(entry), 302)]
    assert "is not sealed yet" in answer.content.decode()


@BOTH
def test_verify_shows_each_step_and_how_to_do_without_the_service(
    acme: Tenant, environment: Environment
) -> None:
    with environments.use(environment):
        entry = make_sealed_entry(acme)
    client = console_of(make_member(acme, Role.AUDITOR), environment)

    html = shown(client, url_of(entry, "verify"))

    for words in ("Contents of the entry", "Path to the checkpoint", "Signature of the log", "Witnesses"):
        assert words in html
    assert "proves nothing to an outsider" in html
    assert "docs/verify_audit_log.py" in html
    assert address_in(environment, "auditlog_auditentry_proof", entry.pk) in html


def test_verify_says_what_was_expected_and_found(owned: None, acme: Tenant) -> None:
    entry = make_sealed_entry(acme)
    with unguarded("auditlog_auditentry"):
        sql.execute("UPDATE auditlog_auditentry SET description = 'x' WHERE id = %s", [entry.id])
    client = console_of(make_member(acme, Role.OFFICER))

    html = shown(client, url_of(entry, "verify"))

    assert "A check failed." in html
    assert html.count("<dt>Expected</dt>") == html.count("<dt>Found</dt>") == 2


def exported(client: Client, form: str, query: str = "") -> bytes:
    answer = client.get(reverse("admin:auditlog_auditentry_export", args=[form]) + query)
    assert answer.status_code == 200
    return answer.getvalue()


def entries_in(export: bytes) -> list[str]:
    if export.startswith(b"{"):
        return [json.loads(line)["entry"]["id"] for line in export.splitlines()[1:-1]]
    return [row["id"] for row in csv.DictReader(io.StringIO(export.decode(), newline=""))][1:-1]


@BOTH
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_export_holds_the_entries_of_the_list(acme: Tenant, environment: Environment, form: str) -> None:
    with environments.use(environment):
        make_entry(acme.id)
        wanted = make_sealed_entry(acme, actor=Actor(ActorKind.SYSTEM, "clock"), description="Grace")
        make_sealed_entry(make_tenant("Rival"), actor=Actor(ActorKind.SYSTEM, "clock"), description="Grace")
    client = console_of(make_member(acme, Role.AUDITOR), environment)

    found = exported(client, form, "?actor_kind__exact=system&q=Grace")

    assert entries_in(found) == [str(wanted.id)]


def test_list_offers_the_export_as_it_is_filtered(acme: Tenant) -> None:
    html = shown(console_of(make_member(acme, Role.OFFICER)), f"{reverse(LIST)}?actor_kind__exact=system&p=1")

    for form in ("jsonl", "csv"):
        assert f'/export/{form}/?actor_kind__exact=system"' in html


def test_operator_chooses_the_tenant_of_an_export(acme: Tenant) -> None:
    mine, theirs = make_sealed_entry(acme), make_sealed_entry(make_tenant("Rival"))
    client = console_of(make_operator())

    without = client.get(reverse("admin:auditlog_auditentry_export", args=["jsonl"]))
    found = entries_in(exported(client, "jsonl", f"?tenant={acme.id}"))

    assert without.status_code == 302
    assert str(mine.id) in found
    assert str(theirs.id) not in found


def test_another_tenants_entries_are_not_exported(acme: Tenant) -> None:
    rival = make_tenant("Rival")
    make_sealed_entry(rival)
    client = console_of(make_member(acme, Role.OFFICER))

    answer = client.get(reverse("admin:auditlog_auditentry_export", args=["jsonl"]) + f"?tenant={rival.id}")

    assert answer.status_code == 302


def test_export_is_for_members_and_only_read(acme: Tenant) -> None:
    address = reverse("admin:auditlog_auditentry_export", args=["jsonl"])

    assert console_of(make_staff()).get(address).status_code == 403
    assert console_of(make_member(acme, Role.OFFICER)).post(address).status_code == 405


@PAGES
def test_looking_changes_nothing(acme: Tenant, page: str) -> None:
    entry = make_sealed_entry(acme)
    client = console_of(make_member(acme, Role.OFFICER))
    tables = (AuditEntry, PendingEntry, Leaf, SignedHead, WitnessState, LogKey)
    before = [list(table.objects.order_by("pk").values()) for table in tables]

    for address in (url_of(entry, page), reverse(TREE), reverse(LIST)):
        assert client.get(address).status_code == 200
    assert client.post(url_of(entry, page)).status_code == 405
    assert client.post(reverse(TREE)).status_code == 405

    assert [list(table.objects.order_by("pk").values()) for table in tables] == before


@BOTH
def test_tree_page_tells_operators_of_the_witnesses(
    acme: Tenant, trusted: Policy, environment: Environment, settings: Settings
) -> None:
    policy = Path(settings.AUDIT_WITNESS_POLICY)
    policy.write_text(re.sub(r"^log .*\n", "", policy.read_text(), flags=re.MULTILINE))
    with environments.use(environment):
        make_sealed_entry(acme)
        gathering.gather(now=now())
        note, vkey = SignedHead.objects.order_by("-size")[0].note, str(LogKey.objects.lasting().get())

    html = shown(console_of(make_operator(), environment), reverse(TREE))

    assert note.split("\n")[2] in html
    assert vkey in html
    assert NOBODY in html
    assert "Connection refused" in html


def test_members_see_the_tree_without_addresses_and_errors(acme: Tenant, trusted: Policy) -> None:
    make_sealed_entry(acme)
    gathering.gather(now=now())

    html = shown(console_of(make_member(acme, Role.OFFICER)), reverse(TREE))

    assert "did not cosign" in html
    assert NOBODY not in html
    assert str(trusted.witnesses[0].url) not in html
    assert "Connection refused" not in html


def test_tree_page_warns_of_a_witness_that_contradicts(acme: Tenant, trusted: Policy) -> None:
    WitnessState.objects.create(name="running", problem="The witness answered 422: no")

    html = shown(console_of(make_member(acme, Role.OFFICER)), reverse(TREE))

    assert "A witness knows another tree of this log." in html


def test_long_values_are_shown(acme: Tenant) -> None:
    entry = make_sealed_entry(
        acme, actor=Actor(ActorKind.SYSTEM, LONG), affected_id=LONG, description=LONG, metadata={LONG: LONG}
    )
    client = console_of(make_operator())

    page = shown(client, url_of(entry))

    assert page.count(LONG) >= 5
    assert shown(client, url_of(entry, "verify"))


def test_overview_counts_sealed_entries(acme: Tenant) -> None:
    make_sealed_entry(acme)

    board = console_of(make_member(acme, Role.OFFICER)).get(reverse("console_overview")).context["board"]

    (tile,) = [each for each in board["tiles"] if each.label == "Sealed audit entries"]
    assert (tile.value, tile.url) == (head().size, reverse(TREE))
