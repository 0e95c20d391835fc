"""Cosignatures gathered from real witnesses: quorum, dead witnesses, a log that was rolled back."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from pytest_django.fixtures import Settings

from auditlog.errors import PublicationStopped, WitnessPolicyInvalid
from auditlog.models import SignedHead, WitnessState
from auditlog.proving import proofs
from auditlog.sealing.tree import latest_checkpoint, published_checkpoint
from auditlog.submitting import gathering
from auditlog.tests.factories import make_log_key
from auditlog.tests.witness_process import WitnessProcess
from auditlog.tests.witnessed import NOBODY, grow, write_policy
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.notes import Note, VerifierKey
from auditlog.tlog.policy import Policy
from compliance.core.clock import now
from compliance.outbound.tests.receivers import answer, receiving
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant

LATER = timedelta(minutes=1)


def test_cosigned_checkpoint_meets_the_policy(trusted: Policy, api: ApiClient) -> None:
    made = grow(5)

    assert gathering.gather(now=now()) == 1

    answer = api.get("/v1/audit-log/checkpoint")
    assert Checkpoint.parse(Note.parse(answer.content.decode()).text).size == made.size
    assert answer["Witness-Quorum"] == "met"


def test_witness_follows_a_growing_log(trusted: Policy) -> None:
    for count in (1, 300, 7):
        grow(count)
        gathering.gather(now=now() + LATER)

    newest = latest_checkpoint()
    assert newest is not None
    assert newest.has_quorum
    assert WitnessState.objects.get(name="running").size == newest.size


def test_cosignatures_are_added_once(trusted: Policy) -> None:
    made = grow()

    gathering.gather(now=now())
    gathering.gather(now=now() + LATER)

    assert SignedHead.objects.get(size=made.size).note.count("\N{EM DASH} witness.example/w1") == 1


def test_log_goes_on_without_enough_witnesses_and_says_so(
    witness: WitnessProcess, tmp_path: Path, settings: Settings, api: ApiClient
) -> None:
    write_policy(witness, tmp_path, settings, quorum="both")
    made = grow()

    gathering.gather(now=now())

    answer = api.get("/v1/audit-log/checkpoint")
    assert answer["Witness-Quorum"] == "missing"
    assert f"\n{made.size}\n" in answer.content.decode()
    assert "\N{EM DASH} witness.example/w1" in answer.content.decode()
    assert WitnessState.objects.get(name="gone").problem
    assert not WitnessState.objects.get(name="running").problem


def test_quorum_follows_from_the_note_that_is_served(api: ApiClient, trusted: Policy) -> None:
    made = grow()
    SignedHead.objects.filter(size=made.size).update(has_quorum=True)

    assert api.get("/v1/audit-log/checkpoint")["Witness-Quorum"] == "missing"
    gathering.gather(now=now())
    assert api.get("/v1/audit-log/checkpoint")["Witness-Quorum"] == "met"


def test_nothing_is_published_after_a_witness_refused_a_fork(
    api: ApiClient, trusted: Policy, witness: WitnessProcess
) -> None:
    grow(2)
    backup = transaction.savepoint()
    grow(5)
    gathering.gather(now=now())
    transaction.savepoint_rollback(backup)
    grow(7)
    gathering.gather(now=now())

    answer = api.get("/v1/audit-log/checkpoint")

    assert (answer.status_code, answer.json()["error"]) == (503, PublicationStopped.message)
    client = api.as_key(make_key(make_tenant()))
    assert client.get("/v1/audit-log/export?format=jsonl").status_code == 503
    witness.kill()
    gathering.gather(now=now() + LATER)
    assert api.get("/v1/audit-log/checkpoint").status_code == 503
    WitnessState.objects.update(problem="")
    assert api.get("/v1/audit-log/checkpoint").status_code == 200


def test_witnesses_are_asked_about_the_logs_of_their_policy(
    trusted: Policy, settings: Settings, api: ApiClient
) -> None:
    grow()
    policy = Path(settings.AUDIT_WITNESS_POLICY)
    other = policy.with_name("of-another-log")
    key = VerifierKey.ed25519("another.example/log", bytes(range(32)))
    other.write_text(re.sub("^log .*$", f"log {key.encode()}", policy.read_text(), flags=re.MULTILINE))
    settings.AUDIT_WITNESS_POLICY = str(other)

    assert gathering.gather(now=now()) == 0
    assert not WitnessState.objects.exists()
    assert api.get("/v1/audit-log/checkpoint")["Witness-Quorum"] == "none"


def test_witnessed_checkpoint_is_published_while_a_newer_one_waits(trusted: Policy) -> None:
    moment = now()
    first = grow(at=moment)
    gathering.gather(now=moment)
    second = grow(at=moment)

    soon = published_checkpoint(now=moment + timedelta(seconds=5))
    late = published_checkpoint(now=moment + LATER)

    assert soon is not None
    assert late is not None
    assert (soon.size, late.size) == (first.size, second.size)
    assert published_checkpoint(now=moment, covering=first.size) is None
    assert [proofs.quorum_of(each) for each in (soon, late)] == ["met", "missing"]


def test_log_rolled_back_to_a_backup_gets_no_cosignature(trusted: Policy) -> None:
    keep = grow(2)
    backup = transaction.savepoint()
    grow(5)
    assert gathering.gather(now=now()) == 1
    transaction.savepoint_rollback(backup)

    short = grow(1)
    assert gathering.gather(now=now()) == 0
    told = WitnessState.objects.get(name="running").problem
    other = grow(7)
    assert gathering.gather(now=now() + LATER) == 0

    assert f"has cosigned {keep.size + 5} entries, this log has {short.size}: it was rolled back" in told
    assert gathering.contradicts(told)
    assert not SignedHead.objects.get(size=other.size).has_quorum
    assert "422" in WitnessState.objects.get(name="running").problem
    assert gathering.contradicts(WitnessState.objects.get(name="running").problem)


def test_what_a_lying_witness_writes_takes_no_cosignature_from_others(
    trusted: Policy, settings: Settings
) -> None:
    made = grow()
    policy = Path(settings.AUDIT_WITNESS_POLICY)
    with receiving(answer(403, "a\0b\r\n\x1b[31mCRITICAL\u2028 all is well".encode())) as liar:
        policy.write_text(policy.read_text().replace(NOBODY, liar.url))

        assert gathering.gather(now=now()) == 1

    assert SignedHead.objects.get(size=made.size).has_quorum
    told = WitnessState.objects.get(name="gone").problem
    assert told == "The witness answered 403: a\ufffdb [31mCRITICAL all is well"


def test_cosignature_that_does_not_verify_stops_no_gathering(trusted: Policy) -> None:
    made = grow()
    (witness, _) = trusted.witnesses
    made.note += witness.key.signature(bytes(72)).line()
    made.save(update_fields=["note"])

    gathering.gather(now=now())

    assert not SignedHead.objects.get(size=made.size).has_quorum
    later = grow()
    assert gathering.gather(now=now() + LATER) == 1
    assert SignedHead.objects.get(size=later.size).has_quorum


def test_witness_that_failed_rests(trusted: Policy, witness: WitnessProcess) -> None:
    grow()
    moment = now()
    witness.kill()

    gathering.gather(now=moment)
    gathering.gather(now=moment + timedelta(seconds=1))

    assert WitnessState.objects.get(name="running").tried_at == moment


def test_policy_that_cannot_be_read_is_unavailable(tmp_path: Path, settings: Settings) -> None:
    settings.AUDIT_WITNESS_POLICY = str(tmp_path / "missing")
    with pytest.raises(WitnessPolicyInvalid):
        gathering.gather(now=now())

    (tmp_path / "bad").write_text("quorum nobody\n")
    settings.AUDIT_WITNESS_POLICY = str(tmp_path / "bad")
    with pytest.raises(WitnessPolicyInvalid, match="Line 1"):
        gathering.gather(now=now())


def test_without_a_policy_nothing_is_asked(settings: Settings, api: ApiClient) -> None:
    settings.AUDIT_WITNESS_POLICY = ""
    make_log_key()
    grow()

    assert gathering.gather(now=now()) == 0
    assert api.get("/v1/audit-log/checkpoint")["Witness-Quorum"] == "none"


def test_witness_that_cosigned_more_says_so_even_of_a_cosigned_checkpoint(trusted: Policy) -> None:
    first = grow(3)
    gathering.gather(now=now())
    grow(4)
    gathering.gather(now=now() + LATER)

    answers = {each.witness.name: each for each in gathering.ask_all(newest=first)}

    assert gathering.contradicts(answers["running"].problem)
    assert not gathering.contradicts(answers["gone"].problem)


def test_witness_asked_about_its_own_checkpoint_knows_no_later_one(trusted: Policy) -> None:
    newest = grow(3)
    gathering.gather(now=now())

    answers = {each.witness.name: each for each in gathering.ask_all(newest=newest)}

    assert answers["running"].problem == ""
    assert answers["running"].cosignature is not None
