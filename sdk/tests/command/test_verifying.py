"""`agentid verify` of webhooks, audit proofs and certificates that were revoked."""

import json
from datetime import UTC, datetime
from pathlib import Path

from agentid import Client
from auditlog.tests.factories import seal_and_sign
from certificates.models import Certificate as StoredCertificate, CertificateAuthority
from compliance.core import environments
from compliance.core.environments import Environment
from tests.command.test_command import Shell
from tests.verify.test_certificates import publish
from tests.verify.test_messages import delivery
from webhooks.sending.signature import new_secret


def test_webhook_is_verified_by_its_raw_body(shell: Shell, tmp_path: Path) -> None:
    secret, file = new_secret(), tmp_path / "body.json"
    body, headers = delivery(secret, at=datetime.now(UTC))
    file.write_bytes(body)
    named = [word for name, value in headers.items() for word in ("--header", f"{name}: {value}")]

    (found,) = shell.read("verify", "webhook", str(file), *named, AGENTID_WEBHOOK_SECRET=secret)

    assert (found["valid"], found["event"]) == (True, "agent.created")
    other = shell.run("verify", "webhook", str(file), *named, AGENTID_WEBHOOK_SECRET=new_secret())
    assert (other.returncode, json.loads(other.stdout)["reason"]) == (1, "invalid_signature")
    file.write_bytes(body + b" ")
    assert shell.run("verify", "webhook", str(file), *named, AGENTID_WEBHOOK_SECRET=secret).returncode == 1


def test_proof_of_an_entry_is_verified(shell: Shell, client: Client, tmp_path: Path) -> None:
    agent = client.agents.register(name="audited", model_hash="sha256:0")
    with environments.use(Environment.LIVE):
        seal_and_sign()
    entry = next(each for each in client.audit_log.list() if each.affected_id == agent.id)
    file = tmp_path / "entry.tlog-proof"
    file.write_text(client.audit_log.proof(entry.id))
    keys = [word for key in client.audit_log.keys().split() for word in ("--log-key", key)]

    (found,) = shell.read("verify", "proof", str(file), *keys)

    assert (found["valid"], found["entry_id"]) == (True, entry.id)
    short = shell.run("verify", "proof", str(file), *keys, "--quorum", "9")
    assert (short.returncode, json.loads(short.stdout)["reason"]) == (1, "too_few_witnesses")
    file.write_text(file.read_text().replace("index ", "index 1"))
    assert shell.run("verify", "proof", str(file), *keys).returncode == 1


def test_revoked_certificate_is_refused(shell: Shell, client: Client, tmp_path: Path) -> None:
    certificate = client.agents.certify(client.agents.register(name="a", model_hash="x").id)
    file = tmp_path / "agent.pem"
    file.write_text(certificate.certificate_pem)
    publish()
    (found,) = shell.read("verify", "certificate", str(file))
    assert found["serial_number"] == certificate.serial_number

    client.certificates.revoke(certificate.id, reason="keyCompromise")
    publish()

    refused = shell.run("verify", "certificate", str(file))
    assert (refused.returncode, json.loads(refused.stdout)["reason"]) == (1, "revoked")


def test_certificate_is_verified_with_the_lists_at_hand(shell: Shell, client: Client, tmp_path: Path) -> None:
    certificate = client.agents.certify(client.agents.register(name="a", model_hash="x").id)
    stored = StoredCertificate.objects.get(serial_number=certificate.serial_number)
    authority, root = stored.authority, CertificateAuthority.objects.get(role="root")
    publish()

    def fetched(part: str) -> bytes:
        serial = authority.serial_number
        return client.authorities.crl_part(serial, part) if part else client.authorities.crl_of(serial)

    def listed(**lists: bytes) -> list[str]:
        for name, octets in lists.items():
            (tmp_path / name).write_bytes(octets)
        return [word for name in lists for word in ("--crl", str(tmp_path / name))]

    def reason(**lists: bytes) -> str:
        done = shell.run("verify", "certificate", str(file), *pinned, *listed(**lists), AGENTID_BASE_URL="")
        found = json.loads(done.stdout)
        assert done.returncode == (0 if found["valid"] else 1), done.stderr
        return str(found.get("reason", ""))

    file, pinned = tmp_path / "agent.pem", authorities(client, tmp_path)
    file.write_text(certificate.certificate_pem)
    before = fetched("")
    client.certificates.revoke(certificate.id, reason="keyCompromise")
    publish()
    full, delta = fetched(""), fetched("delta")

    assert reason(before=before) == ""
    assert reason(full=full) == "revoked"
    assert reason(before=before, delta=delta) == "revoked"
    assert reason(root=client.authorities.crl_of(root.serial_number)) == "not_covered"
    assert reason(nonsense=b"nonsense") == "malformed"


def authorities(client: Client, folder: Path) -> list[str]:
    """The arguments that pin the roots, and give the chain; no service is asked then."""
    listed = client.authorities.list()
    roots, chain = folder / "roots.pem", folder / "chain.pem"
    roots.write_text("".join(each.pem for each in listed.certificates if each.role == "root"))
    chain.write_text(listed.chain_pem)
    return ["--root", str(roots), "--chain", str(chain)]
