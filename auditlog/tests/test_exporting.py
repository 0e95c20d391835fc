"""Exports and proof files verify offline, and any change of them shows."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connections

from auditlog import services
from auditlog.exporting.export import Pieces, export_of, open_export
from auditlog.exporting.formats import FORMATS
from auditlog.filters import EntryFilters
from auditlog.finding import words
from auditlog.models import AuditEntry
from auditlog.proving.proofs import prove
from auditlog.sealing import keys
from auditlog.sealing.stored_rows import sealed_entry_of
from auditlog.sealing.tree import latest_checkpoint
from auditlog.tests.exports import (
    ALTERED,
    CANNOT_TELL,
    VERIFIED,
    VERIFIER,
    exported,
    outsider,
    verified,
    vkey,
)
from auditlog.tests.factories import seal_and_sign
from auditlog.tests.log_keys import SigningKey, make_witness_key
from auditlog.tests.logs import make_log
from auditlog.tlog.notes import Note
from auditlog.vocabulary import Actor, ActorKind, AuditAction
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant

COUNT = 300
PROVEN = ("jsonl", "csv")


@pytest.fixture(scope="module")
def entries(world_transaction: None) -> list[AuditEntry]:
    """A tenant's entries, sealed among others'."""
    make_log(20)
    found = make_log(COUNT, tenant_id=new_id())
    make_log(10)
    return found


@pytest.mark.parametrize("form", PROVEN)
def test_program_of_its_own_verifies_an_export(entries: list[AuditEntry], tmp_path: Path, form: str) -> None:
    (tmp_path / "export").write_bytes(exported(entries[0].tenant_id, form))

    done = subprocess.run(
        [sys.executable, str(VERIFIER), "export", str(tmp_path / "export"), "--log", vkey()],
        capture_output=True, text=True, check=False, cwd=tmp_path, env={},
    )  # fmt: skip

    assert done.returncode == VERIFIED, done.stderr
    assert f"{COUNT} entries of tenant {entries[0].tenant_id}" in done.stdout


def test_both_formats_hold_the_same(entries: list[AuditEntry]) -> None:
    lines = [json.loads(line) for line in exported(entries[0].tenant_id).splitlines()]
    rows = list(csv.DictReader(io.StringIO(exported(entries[0].tenant_id, "csv").decode(), newline="")))

    assert [row["record"] for row in rows] == ["export", *["entry"] * COUNT, "end"]
    assert [int(row["index"]) for row in rows[1:-1]] == [line["index"] for line in lines[1:-1]]
    assert [row["proof"].split() for row in rows[1:-1]] == [
        ["'" * (each.startswith("+") and n == 0) + each for n, each in enumerate(line["path"])]
        for line in lines[1:-1]
    ]
    assert json.loads(rows[-1]["proof"])["entries"] == COUNT


def test_cell_that_would_be_a_formula_is_text_and_verifies(entries: list[AuditEntry]) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(entries[0].tenant_id, "csv").decode(), newline="")))

    shown = {row["description"] for row in rows[1:-1]}

    assert "" in shown
    assert all(text.startswith("'=cmd|") for text in shown - {""})


def test_cells_that_are_empty_or_quoted_come_back(tmp_path: Path) -> None:
    tenant_id = new_id()
    odd = ["", "'", "''", "=1", "-1", "+", "@x", "\t", "\r\n", 'a"b', "a,b\nc", "\uff1d1", "\\", "null"]
    for text in odd:
        entry = AuditEntry(
            tenant_id=tenant_id, event_type="agent.updated", actor_type="agent", actor_kind="agent",
            actor_id=text or "x", description=text, affected_id=text, created_at=now(), metadata={"t": text},
        )  # fmt: skip
        AuditEntry.objects.bulk_create([entry])
    make_log(1)

    for form in PROVEN:
        assert verified(exported(tenant_id, form), tmp_path) == VERIFIED


def test_entries_that_are_not_sealed_are_left_out(entries: list[AuditEntry]) -> None:
    AuditEntry.objects.bulk_create(
        [AuditEntry(tenant_id=entries[0].tenant_id, event_type="agent.updated", actor_type="agent",
                    actor_kind="agent", actor_id="x", created_at=now())]
    )  # fmt: skip

    footer = json.loads(exported(entries[0].tenant_id).splitlines()[-1])

    assert footer["entries"] == COUNT


def test_closed_export_leaves_no_transaction_open(entries: list[AuditEntry]) -> None:
    before = list(connections["default"].savepoint_ids)
    export = open_export(
        tenant_id=entries[0].tenant_id, filters=EntryFilters(), form=FORMATS["jsonl"], now=now()
    )
    pieces = iter(export)
    begun = [next(pieces), next(pieces)]
    within = list(connections["default"].savepoint_ids)

    export.close()

    assert all(begun)
    assert len(within) == len(before) + 1
    assert list(connections["default"].savepoint_ids) == before


def test_export_without_entries_verifies(entries: list[AuditEntry], tmp_path: Path) -> None:
    assert verified(exported(new_id()), tmp_path) == VERIFIED


def test_filters_narrow_an_export(entries: list[AuditEntry]) -> None:
    moment = entries[99].created_at.isoformat()
    counts = {
        name: json.loads(exported(entries[0].tenant_id, **{name: value}).splitlines()[-1])["entries"]
        for name, value in {
            "affected_id": "agent-7", "actor_id": "api_key:8", "actor_kind": "person", "action": "agent.",
            "event_type": "delegation.issued", "after": moment, "before": moment,
        }.items()
    }  # fmt: skip

    assert counts == {
        "affected_id": 1, "actor_id": 1, "actor_kind": 0, "action": COUNT // 2,
        "event_type": COUNT // 2, "after": COUNT - 100, "before": 99,
    }  # fmt: skip


@pytest.mark.parametrize("odd", ["o'Neil", '"; --', "100 % of %s and %(x)s", "%%", "a\\b {}"])
def test_filters_and_searches_of_any_characters_are_exported(odd: str) -> None:
    tenant_id = new_id()
    for text in (odd, f"{odd}x"):
        services.record(
            tenant_id=tenant_id,
            action=AuditAction.AGENT_UPDATED,
            affected_id=text,
            description=f"{text} zebra",
            actor=Actor(ActorKind.API_KEY, text),
            now=now(),
        )
    seal_and_sign()
    said = words.saying(AuditEntry.objects.for_tenant(tenant_id), f"{odd} zebra", tenants=[tenant_id])

    filtered = exported(tenant_id, actor_id=odd, affected_id=odd)
    with closing(
        export_of(said, tenant_id=tenant_id, filters={"q": odd}, form=FORMATS["jsonl"], now=now())
    ) as found:
        searched = b"".join(found)

    assert json.loads(filtered.splitlines()[-1])["entries"] == 1
    assert json.loads(searched.splitlines()[-1])["entries"] == 2


def altered_line(number: int, old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def alter(export: bytes) -> bytes:
        lines = export.splitlines(keepends=True)
        assert old in lines[number]
        lines[number] = lines[number].replace(old, new, 1)
        return b"".join(lines)

    return alter


def with_new_footer(alter: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Alter an export, and count and hash it anew."""

    def whole(export: bytes) -> bytes:
        *lines, _ = alter(export).splitlines(keepends=True)
        footer = {"entries": len(lines) - 1, "sha256": sha256(b"".join(lines)).hexdigest()}
        return b"".join(lines) + FORMATS["jsonl"].framing("end", footer)

    return whole


def swapped(export: bytes) -> bytes:
    lines = export.splitlines(keepends=True)
    lines[5], lines[9] = lines[9], lines[5]
    return b"".join(lines)


def repeated(export: bytes) -> bytes:
    lines = export.splitlines(keepends=True)
    return b"".join([*lines[:5], lines[4], *lines[5:]])


ALTERATIONS = {
    "event type": altered_line(1, b'"delegation.issued"', b'"agent.created"'),
    "time": altered_line(1, b'"created_at":"2', b'"created_at":"3'),
    "actor": altered_line(2, b'"actor_id":"api_key:1"', b'"actor_id":"api_key:2"'),
    "number": altered_line(2, b"0.91", b"0.92"),
    "null": altered_line(1, b'"description":null', b'"description":""'),
    "salt": altered_line(1, b'"head":"', b'"head":"00'),
    "more": altered_line(1, b'"id":', b'"note":"x","id":'),
    "twice": altered_line(2, b'"description":', b'"description":"x","description":'),
    "index": altered_line(1, b'"index":', b'"index":1'),
    "head passed off as erased": altered_line(1, b'"entry":{', b'"entry":{"erased":{"head":"00"},'),
    "shown though erased": altered_line(2, b'"entry":{', b'"entry":{"erased":{"description":"00"},'),
    "swapped": swapped,
    "repeated": repeated,
}


@pytest.mark.parametrize("name", ALTERATIONS)
@pytest.mark.parametrize("renewed", [False, True])
def test_altered_export_is_refused(
    entries: list[AuditEntry], tmp_path: Path, name: str, renewed: bool
) -> None:
    alter = with_new_footer(ALTERATIONS[name]) if renewed else ALTERATIONS[name]

    assert verified(alter(exported(entries[0].tenant_id)), tmp_path) == ALTERED


@pytest.mark.parametrize("form", PROVEN)
def test_octet_changed_anywhere_or_cut_off_shows(
    entries: list[AuditEntry], tmp_path: Path, form: str
) -> None:
    export = exported(entries[0].tenant_id, form)

    for place in range(0, len(export), len(export) // 11):
        changed = export[:place] + bytes([export[place] ^ 1]) + export[place + 1 :]
        assert verified(export[:place], tmp_path) == verified(changed, tmp_path) == ALTERED
    assert verified(export + b"\n", tmp_path) == ALTERED


def test_export_signed_by_another_key_is_refused(entries: list[AuditEntry], tmp_path: Path) -> None:
    other = SigningKey(keys.origin()).public.encode()

    assert verified(exported(entries[0].tenant_id), tmp_path, other) == ALTERED


def proof_file(entry: AuditEntry, tmp_path: Path, *witnesses: SigningKey) -> Path:
    sealed, newest = sealed_entry_of(entry.id), latest_checkpoint()
    assert sealed is not None
    assert newest is not None
    note = Note.parse(newest.note)
    newest.note = Note(note.text, (*note.signatures, *(w.sign(note.text) for w in witnesses))).encode()
    (tmp_path / "proof").write_text(prove(sealed, newest))
    return tmp_path / "proof"


@pytest.mark.parametrize("number", [0, 1, 2, COUNT - 1])
def test_outsider_verifies_a_proof_file(entries: list[AuditEntry], tmp_path: Path, number: int) -> None:
    status, said = outsider("proof", proof_file(entries[number], tmp_path))

    assert status == 0, said
    assert str(entries[number].id) in said


@pytest.mark.parametrize("line", [1, 2, 3, -4, -2])
def test_outsider_refuses_an_altered_proof_file(entries: list[AuditEntry], tmp_path: Path, line: int) -> None:
    proof = proof_file(entries[1], tmp_path)
    lines = proof.read_text().split("\n")
    middle = len(lines[line]) // 2
    letter = "A" if lines[line][middle] != "A" else "B"
    lines[line] = lines[line][:middle] + letter + lines[line][middle + 1 :]
    proof.write_text("\n".join(lines))

    assert outsider("proof", proof)[0] == 1


def test_outsider_demands_a_quorum_of_witnesses(entries: list[AuditEntry], tmp_path: Path) -> None:
    witnesses = [make_witness_key(f"witness.example/{name}") for name in "ab"]
    options = [word for witness in witnesses for word in ("--witness", witness.public.encode())]
    proof = proof_file(entries[0], tmp_path, witnesses[0])

    assert outsider("proof", proof, *options, "--quorum", 1)[0] == 0
    assert outsider("proof", proof, *options, "--quorum", 2)[0] == 1
    assert outsider("proof", proof, *options[:2], *options[:2], "--quorum", 2)[0] == 1


def test_outsider_cannot_tell_without_the_file(tmp_path: Path) -> None:
    assert outsider("export", tmp_path / "absent", log="x")[0] == CANNOT_TELL


def test_command_exports_what_verifies(entries: list[AuditEntry], tmp_path: Path) -> None:
    file = tmp_path / "export.csv"
    call_command(
        "audit_export", "--tenant", str(entries[0].tenant_id), "--format", "csv", "--output", str(file),
        "--action", "agent.", stderr=io.StringIO(),
    )  # fmt: skip

    status, said = outsider("export", file)

    assert status == VERIFIED, said
    assert f"{COUNT // 2} entries" in said


def test_command_cannot_tell_what_it_cannot_read() -> None:
    for arguments in (["--against", "absent"], ["--key", "x+y"], ["--policy", "absent"]):
        with pytest.raises(SystemExit) as exit_status:
            call_command("audit_verify", *arguments, stderr=io.StringIO())

        assert exit_status.value.code == 2


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_endpoint_exports_the_tenants_own(api: ApiClient, tmp_path: Path, form: str) -> None:
    tenant = make_tenant()
    client = api.as_key(make_key(tenant))
    make_log(5, tenant_id=tenant.id)

    answer = client.get(f"/v1/audit-log/export?format={form}&action=agent.")
    export = answer.content

    assert answer.status_code == 200
    assert answer["Content-Disposition"] == f'attachment; filename="audit-log.{form}"'
    assert verified(export, tmp_path) == VERIFIED
    assert str(tenant.id).encode() in export


def test_export_beyond_the_tenants_share_is_503_and_others_export(api: ApiClient, tmp_path: Path) -> None:
    tenant, other = make_tenant(), make_tenant()
    make_log(1, tenant_id=tenant.id)

    def opened() -> Pieces:
        filters = EntryFilters()
        return open_export(tenant_id=tenant.id, filters=filters, form=FORMATS["jsonl"], now=now())

    with closing(opened()), closing(opened()):
        refused = api.as_key(make_key(tenant)).get("/v1/audit-log/export")
        answered = api.as_key(make_key(other)).get("/v1/audit-log/export")
    with closing(opened()) as again:
        found = b"".join(again)

    assert (refused.status_code, answered.status_code) == (503, 200)
    assert verified(found, tmp_path) == VERIFIED
