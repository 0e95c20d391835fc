"""`key_reconcile` and `doctor` on real tokens and databases, beside keys that other tests made."""

import io
import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django.fixtures import Settings

from auditlog import services, services as auditlog
from auditlog.models import AuditEntry, WitnessState
from auditlog.sealing import keys as log_keys, sealer
from auditlog.tests.factories import make_log_key
from auditlog.tests.log_keys import make_witness_key
from auditlog.vocabulary import AuditAction
from certificates.issuing import key_pool
from certificates.models import Certificate, PooledKey, RevocationList
from certificates.tests.factories import make_authorities, make_certified_agent
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.core.tasks import ENVIRONMENT_HEADER, app
from compliance.keys.base import KeyNotFound, KeyRef, StoredKey
from compliance.keys.registry import backend_for, reset
from compliance.stores import redis, wakeups
from compliance.tests.redis_servers import NOWHERE, redis_at
from ops import heartbeat
from ops.doctor import QUORUM_LATE, Finding, examine, log_is_witnessed
from ops.key_inventory import destroy_orphans, reconcile, reference_fields
from signals.tests.factories import make_poll_stream
from tenancy.tests.factories import ACTOR, make_tenant
from webhooks.tests.factories import make_delivery, make_webhook

LATER = timedelta(hours=2)


@pytest.fixture
def stray() -> KeyRef:
    """An agent's key that nothing names."""
    return key_pool.generate(now=now())


def orphans(**later: Any) -> dict[str, StoredKey]:
    shelves = reconcile(now=now() + later.get("later", LATER))
    return {key.uri: key for shelf in shelves for key in shelf.orphans}


def missing() -> set[str]:
    return {uri for shelf in reconcile(now=now()) for uri in shelf.missing}


def told() -> list[Any]:
    """What the audit log says was destroyed."""
    entries = AuditEntry.objects.filter(event_type="key.destroyed")
    return list(entries.order_by("id").values_list("metadata", flat=True))


def run(*arguments: str) -> tuple[list[dict[str, Any]], int]:
    """What a command printed as JSON, and its exit code."""
    out, code = io.StringIO(), 0
    try:
        call_command(*arguments, "--json", stdout=out, stderr=io.StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    return json.loads(out.getvalue()), code


def examined(*arguments: str) -> tuple[dict[str, dict[str, Any]], int]:
    findings, code = run("doctor", "--environment", "live", *arguments)
    return {finding["check"]: finding for finding in findings}, code


def test_key_that_nothing_names_is_an_orphan_once_it_is_old(stray: KeyRef) -> None:
    assert stray.uri not in orphans(later=timedelta(minutes=59))
    assert stray.uri in orphans()


def test_keys_of_pool_certificates_authorities_and_intents_are_named(stray: KeyRef) -> None:
    key_pool.put_back(key=stray, now=now())
    make_certified_agent(make_tenant("Keys"))
    named = {stray.uri, Certificate.objects.get().kms_key_arn}

    found = orphans()

    assert named.isdisjoint(found)
    assert missing() == set()


def test_every_table_that_names_keys_is_asked() -> None:
    known = {(model._meta.label, name) for model, name in reference_fields()}

    assert known >= {
        ("certificates.Certificate", "kms_key_arn"),
        ("certificates.CertificateAuthority", "key_uri"),
        ("certificates.Issuance", "key_uri"),
        ("certificates.PooledKey", "key_uri"),
        ("delegation.TokenKey", "uri"),
        ("auditlog.LogKey", "key_uri"),
    }


def test_orphans_are_destroyed_unless_they_are_named_by_then(stray: KeyRef) -> None:
    other = key_pool.generate(now=now())
    found = orphans()
    key_pool.put_back(key=other, now=now())

    destroyed = destroy_orphans(orphans=[found[stray.uri], found[other.uri]], actor=ACTOR, now=now())

    assert destroyed == 1
    assert told() == [{"key_uri": stray.uri}]
    with pytest.raises(KeyNotFound):
        backend_for(Environment.LIVE).public_key(stray.uri)
    assert backend_for(Environment.LIVE).public_key(other.uri) == other.public_key


def test_orphans_of_other_uses_are_left_to_a_person() -> None:
    key = backend_for(Environment.LIVE).generate_ec(label="token-signing")

    assert destroy_orphans(orphans=[orphans()[key.uri]], actor=ACTOR, now=now()) == 0
    assert backend_for(Environment.LIVE).public_key(key.uri) == key.public_key
    assert told() == []


def test_person_may_destroy_an_orphan_of_any_use_by_its_address() -> None:
    key = backend_for(Environment.LIVE).generate_ec(label="ca-issuing")

    shown, _ = run("key_reconcile", "--grace-minutes", "0", "--destroy", key.uri)

    assert key.uri not in {uri for shelf in shown for uri in shelf["orphans"]}
    assert told() == [{"key_uri": key.uri}]
    with pytest.raises(KeyNotFound):
        backend_for(Environment.LIVE).public_key(key.uri)


def test_key_that_something_names_is_not_destroyed(stray: KeyRef) -> None:
    key_pool.put_back(key=stray, now=now())

    with pytest.raises(SystemExit) as ended:
        call_command("key_reconcile", "--destroy", stray.uri, stdout=io.StringIO(), stderr=io.StringIO())

    assert ended.value.code == 4
    assert told() == []
    assert backend_for(Environment.LIVE).public_key(stray.uri) == stray.public_key


def test_key_that_is_gone_is_missing(stray: KeyRef) -> None:
    key_pool.put_back(key=stray, now=now())
    backend_for(Environment.LIVE).destroy(stray.uri)

    assert missing() == {stray.uri}
    shown, code = run("key_reconcile")
    assert code == 6
    assert stray.uri in {uri for shelf in shown for uri in shelf["missing"]}


def test_row_that_names_no_key_is_told_and_the_other_checks_still_run() -> None:
    PooledKey.objects.create(id=new_id(), key_uri="pkcs11:object=nowhere", spki=b"", created_at=now())

    found = {each.check: each for each in examine(chosen=[Environment.LIVE], fix=False, now=now())}

    assert "no PKCS#11 URI: token and id are required" in found["keys"].detail
    assert found["database"].ok


def test_key_reconcile_tells_orphans_by_token(stray: KeyRef) -> None:
    shown, code = run("key_reconcile", "--grace-minutes", "0")

    assert code == 6
    token = next(shelf for shelf in shown if stray.uri in shelf["orphans"])["token"]
    assert stray.uri.startswith(f"pkcs11:token={token};")


def test_key_reconcile_without_an_hsm_exits_with_5(settings: Settings) -> None:
    settings.PKCS11_MODULE = ""
    reset()
    with pytest.raises(SystemExit) as ended:
        call_command("key_reconcile", stdout=io.StringIO(), stderr=io.StringIO())
    reset()

    assert ended.value.code == 5


@pytest.fixture
def sound(settings: Settings) -> Iterator[None]:
    """A service in order: authorities, a log key, a pool, a heartbeat, a webhook sender."""
    settings.KEY_POOL_SIZE = 1
    app.control.purge()  # Messages of other tests wait for no worker.
    make_authorities()
    log_keys.bootstrap(actor=ACTOR, now=now())
    key_pool.fill(now=now())
    heartbeat.note_life.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)
    wakeups.mark_alive(wakeups.WEBHOOKS)
    yield
    redis.client().delete(redis.key("heartbeat"), redis.key(*wakeups.WEBHOOKS, "alive"))


@pytest.mark.usefixtures("sound")
def test_doctor_finds_nothing_wrong_with_a_sound_service() -> None:
    findings, code = examined("--fix")

    assert [finding for finding in findings.values() if not finding["ok"]] == []
    assert code == 0
    seen = {
        "workers and beat": r"the last heartbeat is \d+ s old, \d+ messages? waiting",
        "certificate authorities": r"\d CAs, the first ends on \d{4}-\d\d-\d\d",
        "revocation lists": r"\d lists?, the first until \d{4}-\d\d-\d\d \d\d:\d\d UTC",
        "key pool": r"1 of 1 keys",
        "partitions": r"partitions until \d{4}-\d\d-\d\d",
        "audit log sealing": r"nothing is sealed yet",
        "migrations": r"no migration waits",
        "webhook senders": r"no delivery is late",
        "issuances": r"all issuances are finished",
        "keys": r"each key has its row, and each row its key",
    }
    for name, words in seen.items():
        assert re.fullmatch(words, findings[name]["detail"]), findings[name]


@pytest.mark.usefixtures("sound")
def test_doctor_sees_and_repairs_an_empty_pool() -> None:
    PooledKey.objects.all().delete()

    before, code = examined()
    after, _ = examined("--fix")

    assert (code, before["key pool"]["ok"]) == (6, False)
    assert (after["key pool"]["ok"], after["key pool"]["fixed"]) == (True, "1 keys made")


@pytest.mark.usefixtures("sound")
def test_doctor_sees_and_repairs_a_missing_list() -> None:
    RevocationList.objects.all().delete()

    before, _ = examined()
    after, _ = examined("--fix")

    assert not before["revocation lists"]["ok"]
    assert after["revocation lists"]["ok"]


def test_doctor_sees_that_no_key_signs_the_log() -> None:
    before, _ = examined()
    log_keys.rotate(actor=ACTOR, now=now())
    after, _ = examined()

    assert not before["audit log key"]["ok"]
    assert after["audit log key"]["ok"]


@pytest.mark.usefixtures("sound")
def test_doctor_sees_and_seals_entries_that_wait() -> None:
    auditlog.record(tenant_id=new_id(), action=AuditAction.AGENT_UPDATED, actor=ACTOR, now=now())

    before, after = (sealing_found(fix=fix, now=now() + timedelta(minutes=2)) for fix in (False, True))

    assert not before.ok
    assert "entries wait to be sealed" in before.detail
    assert after.ok
    assert after.fixed.endswith("entries sealed")


def sealing_found(*, fix: bool, now: datetime) -> Finding:
    found = {finding.check: finding for finding in examine(chosen=[Environment.LIVE], fix=fix, now=now)}
    return found["audit log sealing"]


@pytest.mark.usefixtures("sound")
def test_doctor_sees_that_no_worker_answers() -> None:
    heartbeat.beat(now=now() - timedelta(minutes=5))

    findings, code = examined()

    assert code == 6
    assert "300 s old" in findings["workers and beat"]["detail"]


@pytest.mark.usefixtures("sound")
def test_doctor_sees_that_no_sender_runs_and_that_a_delivery_is_late() -> None:
    make_delivery(make_webhook(make_tenant()), at=now() - timedelta(minutes=1))

    late, _ = examined()
    redis.client().delete(redis.key(*wakeups.WEBHOOKS, "alive"))
    stopped, _ = examined()

    assert late["webhook senders"]["detail"].startswith("a delivery is due since")
    assert stopped["webhook senders"]["detail"] == "no webhook sender runs"
    assert "webhook_sender" in stopped["webhook senders"]["remedy"]


@pytest.mark.usefixtures("sound")
def test_doctor_sees_that_streams_have_no_sender() -> None:
    redis.client().delete(redis.key(*wakeups.SIGNALS, "alive"))
    without_streams, _ = examined()
    make_poll_stream(make_tenant())
    stopped, _ = examined()
    wakeups.mark_alive(wakeups.SIGNALS)
    running, _ = examined()

    assert without_streams["signal senders"]["ok"]
    assert stopped["signal senders"]["detail"] == "no signal sender runs"
    assert running["signal senders"]["ok"]


@pytest.mark.usefixtures("sound")
def test_doctor_exits_with_5_when_the_hsm_is_down_and_goes_on(settings: Settings) -> None:
    settings.PKCS11_MODULE = ""
    reset()

    findings, code = examined("--fix")
    reset()

    assert code == 5
    assert findings["hsm"]["is_down"]
    assert findings["hsm"]["detail"] == "KMS not configured"
    assert findings["database"]["ok"]


@pytest.mark.usefixtures("sound")
def test_doctor_without_redis_finds_one_problem(settings: Settings) -> None:
    with redis_at(NOWHERE, settings):
        findings, code = examined()

    assert [name for name, finding in findings.items() if not finding["ok"]] == ["redis"]
    assert findings["workers and beat"]["detail"] == "unknown without Redis"
    assert code == 5


@pytest.mark.usefixtures("sound")
def test_doctor_speaks_to_people_too() -> None:
    out = io.StringIO()
    PooledKey.objects.all().delete()

    with pytest.raises(SystemExit):
        call_command("doctor", "--environment", "live", stdout=out, stderr=io.StringIO())

    assert "✓ live  database" in out.getvalue()
    assert "✗ live  key pool" in out.getvalue()
    assert "→ manage.py key_pool_fill" in out.getvalue()


# --- Doctor on witnesses: a quorum that is missing for long, a witness that contradicts the log ----


SECOND = timedelta(seconds=1)


@pytest.fixture
def policy(tmp_path: Path, settings: Settings) -> None:
    """One witness, which must cosign."""
    path = tmp_path / "policy"
    path.write_text(f"witness w1 {make_witness_key().public.encode()} http://127.0.0.1:9\nquorum w1\n")
    settings.AUDIT_WITNESS_POLICY = str(path)


def test_without_witnesses_there_is_no_finding() -> None:
    assert log_is_witnessed(now()).problem == ""


def test_missing_quorum_is_a_finding_after_five_minutes(policy: None) -> None:
    make_log_key()
    services.record(tenant_id=new_id(), action=AuditAction.AGENT_UPDATED, actor=ACTOR, now=now())
    sealer.seal_all()
    signed = sealer.sign_head(now=now())
    assert signed is not None

    soon, late = (
        log_is_witnessed(signed.signed_at + QUORUM_LATE + wait).problem for wait in (-SECOND, SECOND)
    )

    assert soon == ""
    assert late == f"not enough cosignatures since {signed.signed_at:%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("problem", "found"),
    [
        ("The witness answered 422: no", "w1: The witness answered 422: no"),
        ("The witness answered 503: busy", ""),
    ],
)
def test_witness_that_contradicts_is_a_finding(policy: None, problem: str, found: str) -> None:
    WitnessState.objects.create(name="w1", problem=problem)

    assert log_is_witnessed(now()).problem == found


def test_policy_that_cannot_be_read_is_a_finding(settings: Settings, tmp_path: Path) -> None:
    settings.AUDIT_WITNESS_POLICY = str(tmp_path / "missing")

    assert "AUDIT_WITNESS_POLICY" in log_is_witnessed(now()).problem
