"""Proofs of the audit log, and forgeries of them."""

import json
from base64 import b64decode, b64encode
from dataclasses import replace

import pytest

from agentid import Client
from agentid.verify import (
    LogTrust,
    NotValid,
    Reason,
    verify_audit_proof,
    verify_checkpoint,
    verify_consistency,
)
from auditlog.tests.factories import seal_and_sign
from compliance.core import environments
from compliance.core.environments import Environment
from tests.verify.test_certificates import reason_of


@pytest.fixture
def proof(client: Client) -> str:
    """The proof of an agent's registration."""
    agent = client.agents.register(name="audited", model_hash="sha256:0")
    with environments.use(Environment.LIVE):
        seal_and_sign()
    entry = next(each for each in client.audit_log.list() if each.affected_id == agent.id)
    return client.audit_log.proof(entry.id)


@pytest.fixture
def trust(client: Client, proof: str) -> LogTrust:
    return LogTrust(tuple(client.audit_log.keys().split()))


def test_entry_is_as_it_was_sealed(proof: str, trust: LogTrust) -> None:
    found = verify_audit_proof(proof, trust=trust)

    assert found.entry["event_type"] == "agent.created"
    assert found.index < found.checkpoint.size


def test_changed_entry_is_found_out(proof: str, trust: LogTrust) -> None:
    lines = proof.split("\n")
    entry = json.loads(b64decode(lines[1].removeprefix("extra ")))

    def changed(**fields: object) -> str:
        text = json.dumps({**entry, **fields}).encode()
        return "\n".join([lines[0], f"extra {b64encode(text).decode()}", *lines[2:]])

    assert reason_of(lambda: verify_audit_proof(changed(actor_id="x"), trust=trust)) is Reason.NOT_AS_SEALED
    assert reason_of(lambda: verify_audit_proof(changed(more=1), trust=trust)) is Reason.MALFORMED
    assert reason_of(lambda: verify_audit_proof(changed(salts={}), trust=trust)) is Reason.MALFORMED
    assert reason_of(lambda: verify_audit_proof(changed(erased={"head": "00" * 32}), trust=trust)) is (
        Reason.MALFORMED
    )


def test_substituted_nodes_and_places_are_found_out(proof: str, trust: LogTrust) -> None:
    head, _, note = proof.partition("\n\n")
    version, extra, index, *path = head.split("\n")
    place = int(index.removeprefix("index "))
    other = b64encode(b"\x01" * 32).decode()

    def made(place: int, nodes: list[str]) -> str:
        return "\n".join([version, extra, f"index {place}", *nodes]) + f"\n\n{note}"

    assert path, "a log of one entry has no path"
    assert reason_of(lambda: verify_audit_proof(made(place, [other, *path[1:]]), trust=trust)) is (
        Reason.NOT_AS_SEALED
    )
    assert reason_of(lambda: verify_audit_proof(made(place, path[1:]), trust=trust)) is Reason.MALFORMED
    assert reason_of(lambda: verify_audit_proof(made(10**9, path), trust=trust)) is Reason.MALFORMED
    assert reason_of(lambda: verify_audit_proof("x", trust=trust)) is Reason.MALFORMED


def test_checkpoint_of_another_key_or_without_witnesses_is_refused(proof: str, trust: LogTrust) -> None:
    note = proof.partition("\n\n")[2]
    origin, size, *rest = note.split("\n")
    bigger = "\n".join([origin, str(int(size) + 1), *rest])

    assert verify_checkpoint(note, trust=trust).size == int(size)
    assert reason_of(lambda: verify_checkpoint(bigger, trust=trust)) is Reason.INVALID_SIGNATURE
    assert reason_of(lambda: verify_checkpoint(note, trust=LogTrust(()))) is Reason.UNKNOWN_KEY
    assert reason_of(lambda: verify_checkpoint(note, trust=replace(trust, quorum=1))) is (
        Reason.TOO_FEW_WITNESSES
    )


def test_newer_log_begins_with_the_older_one(client: Client, proof: str, trust: LogTrust) -> None:
    old = client.audit_log.checkpoint()
    client.agents.register(name="later", model_hash="sha256:0")
    with environments.use(Environment.LIVE):
        seal_and_sign()
    new = client.audit_log.checkpoint()
    sizes = [verify_checkpoint(each, trust=trust).size for each in (old, new)]
    found = client.audit_log.consistency(from_=sizes[0], to=sizes[1])

    first, second = verify_consistency(old, new, found.hashes, trust=trust)

    assert first.size < second.size
    substituted = [b64encode(bytes(32)).decode(), *found.hashes[1:]]
    for hashes in (substituted, [*found.hashes, substituted[0]], []):
        with pytest.raises(NotValid):
            verify_consistency(old, new, hashes, trust=trust)
    with pytest.raises(NotValid):
        verify_consistency(new, old, found.hashes, trust=trust)
