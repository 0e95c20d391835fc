"""The signed bundle: made, downloaded, and checked by `report_verify` and by openssl alone."""

import io
import json
import shutil
import subprocess
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import call_command
from jsonschema_rs import Draft202012Validator
from pypdf import PdfReader

from auditlog.models import LogKey
from auditlog.sealing import keys
from auditlog.tests.factories import seal_and_sign
from auditlog.vocabulary import Actor
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.commands import EXIT_FINDINGS
from compliance.tests.client import ApiClient
from events.tests.factories import make_high_event
from reports import services
from reports.bundles import manifest
from reports.bundles.archive import NoBundle, pack, unpack
from reports.bundles.lists import RowList
from reports.content.builder import SCHEMA, build
from reports.management.commands.report_verify import findings
from reports.models import Report
from reports.pdf.sections import DIGESTS, FINGERPRINT, OF_VKEY, SIGNATURE
from reports.tests.factories import make_busy_facts, make_frame
from reports.vocabulary import ReportType
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant

ACTOR = Actor.system("tests")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant("Αθήνα")


def make_signed_report(tenant: Tenant) -> Report:
    agent = make_certified_agent(tenant)
    for _ in range(3):
        make_high_event(agent)
    seal_and_sign()
    report = services.request_report(
        tenant_id=tenant.id,
        type="eu_ai_act",
        period_start=now() - timedelta(days=7),
        period_end=now(),
        actor=ACTOR,
        now=now(),
    )
    assert services.generate_next(now=now())
    report.refresh_from_db()
    return report


def files_of(client: ApiClient, report: Report) -> dict[str, bytes]:
    answer = client.get(f"/v1/reports/{report.id}/bundle")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip")
    return unpack(answer.content)


def trusted() -> list[bytes]:
    return [bytes(key.public_key) for key in LogKey.objects.all()]


def test_bundle_holds_what_the_manifest_says(client: ApiClient, tenant: Tenant) -> None:
    report = make_signed_report(tenant)

    files = files_of(client, report)
    stated = json.loads(files["manifest.json"])

    assert findings(files, trusted()) == []
    assert client.get(f"/v1/reports/{report.id}/pdf").content == files["report.pdf"]
    Draft202012Validator(SCHEMA).validate(json.loads(files["report.json"]))
    listed = {each["name"]: (each["rows"], each["of"]) for each in stated["files"] if "rows" in each}
    assert listed["evidence/high_risk_events.jsonl"] == (3, 3)
    assert listed["evidence/stops.jsonl"] == (1, 1)
    assert len(files["evidence/high_risk_events.jsonl"].splitlines()) == 3
    assert stated["tenant_id"] == str(tenant.id)
    assert stated["model_versions"]
    assert stated["audit_log_checkpoint"].startswith(keys.origin())
    assert_named(json.loads(files["report.json"]), files)


def assert_named(report: dict[str, Any], files: dict[str, bytes]) -> None:
    """Compare the counts of all claims with the lines of the lists that the report names."""
    named = {each["list"] for each in report["rows"].values()} - {None}
    assert named == {name for name in files if name.startswith("evidence/")}
    for control in report["controls"]:
        for claim in control["evidence"]:
            if (name := report["rows"][claim["rows"]]["list"]) is not None:
                assert len(files[name].splitlines()) == claim["count"]


@needs_openssl
def test_openssl_alone_checks_the_bundle_by_the_commands_of_the_pdf(
    client: ApiClient, tenant: Tenant, tmp_path: Path
) -> None:
    report = make_signed_report(tenant)
    with zipfile.ZipFile(io.BytesIO(client.get(f"/v1/reports/{report.id}/bundle").content)) as archive:
        archive.extractall(tmp_path)
    text = "".join(page.extract_text() for page in PdfReader(tmp_path / "report.pdf").pages)
    told = json.loads((tmp_path / "manifest.json").read_bytes())

    (key,) = ApiClient().get("/v1/audit-log/keys").content.decode().split()
    of_key = OF_VKEY.replace("VKEY", f"'{key}'")
    commands = (SIGNATURE, DIGESTS, FINGERPRINT, of_key)
    signature, digests, fingerprint, published = (shell(line, tmp_path) for line in commands)
    (tmp_path / "manifest.json").write_bytes((tmp_path / "manifest.json").read_bytes() + b" ")
    forged = shell(SIGNATURE, tmp_path)

    assert all(line in text for line in (SIGNATURE, DIGESTS, FINGERPRINT, OF_VKEY, "/v1/audit-log/keys"))
    assert "Signature Verified Successfully" in signature
    assert "Verification Failure" in forged or "Verified Successfully" not in forged
    stated = {each["name"]: each["sha256"] for each in told["files"]}
    assert {name: digest for digest, name in (line.split(" *") for line in digests.splitlines())} == stated
    assert told["key"]["sha256"] in fingerprint
    assert told["key"]["sha256"] in published
    assert told["key"]["sha256"] in text


def shell(line: str, folder: Path) -> str:
    """Run a command of ours, as a reader would."""
    done = subprocess.run(["/bin/sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout


SIGNER = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = SIGNER.public_key().public_bytes_raw()


def make_files() -> dict[str, bytes]:
    """A bundle signed by a key of the test."""
    document, stops = build(ReportType.MICA, make_frame(), make_busy_facts()), RowList("stops", b"{}\n", 1, 1)
    stated = manifest.compose(document, b"%PDF-", [stops], checkpoint=None, key=PUBLIC)
    return {
        "report.json": rfc8785.dumps(document),
        "report.pdf": b"%PDF-",
        "stops": b"{}\n",
        "manifest.json": stated,
        "manifest.sig": SIGNER.sign(stated),
        "key.pem": manifest.pem(PUBLIC),
    }


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"report.json": b"{}"}, "report.json is not what was signed"),
        ({"report.pdf": b"%PDF"}, "report.pdf is not what was signed"),
        ({"stops": b""}, "stops is not what was signed"),
        ({"manifest.json": b'{"format":"report-manifest/1","files":[]}'}, "signature of the manifest"),
        ({"manifest.sig": b"x" * 64}, "signature of the manifest"),
        ({"key.pem": b""}, "key.pem is another key"),
        ({"more.txt": b""}, "more.txt is not in the manifest"),
        ({"report.pdf": None}, "report.pdf is missing"),
        ({"manifest.sig": None}, "manifest.sig is missing"),
    ],
)
def test_any_change_is_found(change: dict[str, bytes | None], finding: str) -> None:
    files = make_files() | change

    found = findings({name: text for name, text in files.items() if text is not None}, [PUBLIC])

    assert any(finding in each for each in found)


@pytest.mark.parametrize("signed", [b"audit.example\n7\nAAAA\n", b"[]", b"\xff"])
def test_what_the_key_signed_beside_manifests_is_none(signed: bytes) -> None:
    files = make_files() | {"manifest.json": signed, "manifest.sig": SIGNER.sign(signed)}

    assert findings(files, [PUBLIC]) == ["The manifest is not of the format report-manifest/1"]


def test_only_trusted_keys_count() -> None:
    assert findings(make_files(), [b"\x01" * 32, PUBLIC]) == []
    assert "does not verify" in findings(make_files(), [b"\x01" * 32])[0]


def test_command_verifies_a_bundle(client: ApiClient, tenant: Tenant, tmp_path: Path, capsys: Any) -> None:
    report = make_signed_report(tenant)
    sound, forged = tmp_path / "sound.zip", tmp_path / "forged.zip"
    sound.write_bytes(client.get(f"/v1/reports/{report.id}/bundle").content)
    forged.write_bytes(pack(unpack(sound.read_bytes()) | {"report.json": b"{}"}))
    vkey = keys.verifier_key(LogKey.objects.latest("active_from")).encode()

    call_command("report_verify", str(sound))
    call_command("report_verify", str(sound), "--key", vkey)
    with pytest.raises(SystemExit) as failed:
        call_command("report_verify", str(forged))

    assert failed.value.code == EXIT_FINDINGS
    told = capsys.readouterr().out
    assert [line.split()[1] for line in told.splitlines() if "sound.zip" in line] == ["yes", "yes"]
    assert "report.json is not what was signed" in told


def test_manifest_is_read_by_its_tenant(api: ApiClient, client: ApiClient, tenant: Tenant) -> None:
    report = make_signed_report(tenant)
    stranger = api.as_key(make_key(make_tenant("Other")))

    data = client.get(f"/v1/reports/{report.id}/manifest").json()["data"]
    foreign = [stranger.get(f"/v1/reports/{report.id}/{name}") for name in ("manifest", "bundle")]

    assert set(data) == {"manifest", "signature", "public_key"}
    assert data["manifest"] == json.loads(report.manifest)
    assert data["public_key"].startswith("-----BEGIN PUBLIC KEY-----")
    assert [answer.status_code for answer in foreign] == [404, 404]


def test_reports_without_a_manifest_say_so(client: ApiClient, tenant: Tenant) -> None:
    report = make_signed_report(tenant)
    Report.objects.filter(id=report.id).update(manifest="", signature=b"", signing_key=b"")

    answers = [client.get(f"/v1/reports/{report.id}/{name}") for name in ("manifest", "bundle")]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json()["error"] == "The report has no manifest; request it again"


def test_schema_is_served(client: ApiClient) -> None:
    answer = client.get("/v1/reports/schema")

    assert json.loads(answer.content) == SCHEMA


def test_log_key_signs_json_objects_alone() -> None:
    key = keys.bootstrap(actor=ACTOR, now=datetime(2026, 1, 1, tzinfo=UTC))

    with pytest.raises(ValueError, match="Only JSON objects"):
        keys.sign_document(f"{keys.origin()}\n1\n".encode(), key=key)


@pytest.mark.parametrize("packed", [b"", b"PK", b"PK\x05\x06" + b"\0" * 17])
def test_other_files_are_no_bundle(packed: bytes) -> None:
    with pytest.raises(NoBundle):
        unpack(packed)


def test_second_file_of_a_name_is_no_bundle() -> None:
    """Other tools unpack the first of the two, or ask."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("report.json", b"forged")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("report.json", b"signed")

    with pytest.raises(NoBundle):
        unpack(out.getvalue())


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_bundle_is_no_bundle(method: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("report.json", bytes(range(256)))
    packed = bytearray(out.getvalue())
    packed[45:75] = b"\xff" * 30

    with pytest.raises(NoBundle):
        unpack(bytes(packed))
