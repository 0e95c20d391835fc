"""The keys that sign the log's checkpoints, their commands and their task, on the real HSM."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError
from pytest_django.fixtures import Settings

from auditlog.apps import check_origin
from auditlog.errors import LogKeyRotationUnderWay, LogKeysMissing
from auditlog.models import AuditEntry, LogKey
from auditlog.sealing import keys
from auditlog.tasks import drop_expired
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.keys.base import KeyNotFound
from compliance.keys.registry import backend_for
from compliance.tests.owner import owning
from compliance.tests.threads import THREADS, at_once

ACTOR = Actor.system("test")
START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CHECKPOINT = "service.example/v1/audit-log\n1\nAAAA\n"


def bootstrap(at: datetime = START) -> LogKey:
    return keys.bootstrap(actor=ACTOR, now=at)


def rotate(at: datetime, **overlap: timedelta) -> LogKey:
    return keys.rotate(actor=ACTOR, now=at, **overlap)


def signing(at: datetime) -> list[LogKey]:
    return keys.signing_keys(at)


def audited(action: str) -> list[dict[str, Any]]:
    entries = AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).of_type(action)
    return [entry.metadata for entry in entries.order_by("id") if entry.metadata]


def keys_in_the_token() -> set[str]:
    return {key.uri for key in backend_for(Environment.LIVE).list_keys(keys.LABEL)}


@pytest.fixture
def old() -> LogKey:
    return bootstrap()


def test_bootstrap_makes_one_key_once_and_audits_it(settings: Settings) -> None:
    settings.AUDIT_LOG_ORIGIN = "service.example/v1/audit-log"

    first, again = bootstrap(), bootstrap(START + HOUR)

    assert first.id == again.id
    assert signing(START) == [first]
    assert first.name == "service.example/v1/audit-log"
    assert audited("log_key.created") == [
        {"vkey": keys.verifier_key(first).encode(), "active_from": START.isoformat(), "retired_at": None}
    ]


def test_sandbox_has_a_key_and_a_name_of_its_own() -> None:
    live = bootstrap()
    with environments.use(Environment.TEST):
        test = bootstrap()

    assert test.name == f"{live.name}/test"
    assert test.public_key != live.public_key
    with pytest.raises(KeyNotFound):
        backend_for(Environment.LIVE).sign_ed25519(test.key_uri, CHECKPOINT.encode())


def test_nothing_signs_before_the_first_key() -> None:
    with pytest.raises(LogKeysMissing) as missing:
        keys.sign(CHECKPOINT, now=START)

    assert missing.value.status == 503
    assert keys.verifier_keys(now=START) == []


def test_old_and_new_key_sign_while_they_overlap(old: LogKey) -> None:
    new = rotate(START + DAY, overlap=7 * DAY)

    assert signing(START + DAY) == [new, old]
    signatures = keys.sign(CHECKPOINT, now=START + 8 * DAY - HOUR)
    for key, signature in zip((new, old), signatures, strict=True):
        keys.verifier_key(key).verify(CHECKPOINT, signature)
    assert signing(START + 8 * DAY) == [new]
    assert [entry["vkey"] for entry in audited("log_key.retired")] == [keys.verifier_key(old).encode()]


def test_keys_that_ever_signed_are_known_with_their_dates(old: LogKey) -> None:
    new = rotate(START + DAY, overlap=7 * DAY)

    found = keys.log_keys(START + 365 * DAY)

    assert [(keys.verifier_key(key).encode(), key.active_from, key.retired_at) for key in found] == [
        (keys.verifier_key(old).encode(), START, START + 8 * DAY),
        (keys.verifier_key(new).encode(), START + DAY, None),
    ]
    assert keys.log_keys(START) == [old]
    assert keys.verifier_keys(now=START + DAY) == [keys.verifier_key(new), keys.verifier_key(old)]


def test_compromised_keys_end_at_once() -> None:
    bootstrap()
    rotate(START + DAY, overlap=30 * DAY)

    new = rotate(START + 2 * DAY, overlap=timedelta())

    assert signing(START + 2 * DAY) == [new]


def test_later_rotation_does_not_prolong_an_older_key(old: LogKey) -> None:
    rotate(START + DAY, overlap=2 * DAY)

    rotate(START + 2 * DAY, overlap=30 * DAY)

    assert LogKey.objects.get(id=old.id).retired_at == START + 3 * DAY
    assert len(signing(START + 2 * DAY)) == 3


def test_log_keeps_its_name(settings: Settings, old: LogKey) -> None:
    settings.AUDIT_LOG_ORIGIN = "elsewhere.example/log"

    assert rotate(START + DAY).name == old.name


def test_private_halves_are_destroyed_an_hour_after_their_end(old: LogKey) -> None:
    new = rotate(START + DAY, overlap=DAY)

    assert keys.destroy_ended(now=START + 2 * DAY + HOUR) == 0
    assert keys.destroy_ended(now=START + 2 * DAY + 2 * HOUR) == 1
    assert keys.destroy_ended(now=START + 3 * DAY) == 0
    backend = backend_for(Environment.LIVE)
    with pytest.raises(KeyNotFound):
        backend.sign_ed25519(old.key_uri, CHECKPOINT.encode())
    assert backend.sign_ed25519(new.key_uri, CHECKPOINT.encode())


def test_task_destroys_ended_keys(old: LogKey) -> None:
    rotate(START + DAY, overlap=timedelta())
    backend_for(Environment.LIVE).destroy(old.key_uri)  # as a run that was killed leaves it

    drop_expired.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)

    assert LogKey.objects.get(id=old.id).destroyed_at is not None


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({}, "one_lasting_log_key"),
        ({"retired_at": START - HOUR}, "retired_after_active"),
        ({"destroyed_at": START}, "one_lasting_log_key|destroyed_after_retired"),
        ({"retired_at": START + DAY, "destroyed_at": START}, "destroyed_after_retired"),
    ],
)
def test_database_refuses_a_second_lasting_key_and_ends_out_of_order(
    fields: dict[str, Any], constraint: str
) -> None:
    bootstrap()

    with pytest.raises(IntegrityError, match=constraint):
        LogKey.objects.create(
            name="other",
            public_key=b"x" * 32,
            key_uri="pkcs11:",
            created_at=START,
            active_from=START,
            **fields,
        )


# --- Several at once ------------------------------------------------------------------------------


def test_first_key_is_made_once_and_leaves_no_orphans(committed: None) -> None:
    with owning():
        LogKey.objects.all().delete()
    before = keys_in_the_token()

    made = at_once(bootstrap)

    lasting = LogKey.objects.get()
    assert {key.id for key in made} == {lasting.id}
    assert keys_in_the_token() - before == {lasting.key_uri}


def test_rotations_at_once_leave_one_lasting_key_and_no_orphans(committed: None) -> None:
    with owning():
        LogKey.objects.all().delete()
    bootstrap()
    before = keys_in_the_token()

    made = at_once(lambda: rotate(START + DAY, overlap=DAY))

    won = [key for key in made if isinstance(key, LogKey)]
    assert LogKey.objects.lasting().get() in won
    assert sum(isinstance(error, LogKeyRotationUnderWay) for error in made) == THREADS - len(won)
    assert keys_in_the_token() - before == {key.key_uri for key in won}


# --- Commands and settings ------------------------------------------------------------------------


def run(*arguments: str) -> Any:
    out = io.StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_commands_rotate_and_list() -> None:
    first = run("audit_key_rotate")
    second = run("audit_key_rotate", "--overlap-days", "0")

    listed = run("audit_key_list")

    assert [key["vkey"] for key in listed] == [first["vkey"], second["vkey"]]
    assert listed[0]["retired_at"] == second["active_from"]
    assert run("audit_key_list", "--environment", "test") == []


@pytest.mark.parametrize(
    ("origin", "is_refused"),
    [
        ("service.example/v1/audit-log", False),
        ("127.0.0.1:8000/v1/audit-log", False),
        ("", True),
        ("a b", True),
        ("a+b", True),
        ("a\u2003b", True),
        ("a" * 251, True),
    ],
)
def test_origin_that_cannot_name_a_key_is_refused(settings: Settings, origin: str, is_refused: bool) -> None:
    settings.AUDIT_LOG_ORIGIN = origin

    assert [error.id for error in check_origin()] == (["auditlog.E001"] if is_refused else [])
