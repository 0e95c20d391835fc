"""The life of token keys, the JWKS, the commands and the task, on the real HSM."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError

from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import SERVICE_TENANT_ID
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.keys.base import KeyNotFound
from compliance.keys.registry import backend_for
from compliance.tests.client import ApiClient
from delegation import services
from delegation.errors import RejectionReason, RotationUnderWay
from delegation.models import TokenKey
from delegation.tasks import maintain_keys
from delegation.tests.factories import ACTOR, make_token
from delegation.token_keys import keyring, keys
from tenancy.models import Tenant

START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def published(at: datetime) -> set[str]:
    return {jwk["kid"] for jwk in keys.jwks(now=at)}


def test_bootstrap_makes_one_key_once() -> None:
    first = services.bootstrap(now=START)
    again = services.bootstrap(now=START + HOUR)

    assert first.id == again.id
    assert TokenKey.objects.count() == 1
    assert (
        AuditEntry.objects.for_tenant(SERVICE_TENANT_ID).filter(event_type="token_key.created").count() == 1
    )


def test_environments_have_keys_of_their_own() -> None:
    live = services.bootstrap(now=START)
    with environments.use(Environment.TEST):
        test = services.bootstrap(now=START)

    assert live.kid != test.kid
    backend_for(Environment.LIVE).public_key(live.uri)
    with pytest.raises((KeyNotFound, ValueError)):
        backend_for(Environment.TEST).public_key(live.uri)


def test_a_rotation_publishes_then_signs_then_keeps_for_a_day() -> None:
    old = services.bootstrap(now=START)
    new = keys.rotate(actor=ACTOR, now=START + HOUR)

    assert published(START + HOUR) == {old.kid, new.kid}
    assert keys.signing_key().kid == old.kid
    assert keys.promote_due(actor=ACTOR, now=START + HOUR + 14 * MINUTE) is None
    switched = START + HOUR + 15 * MINUTE
    keys.promote_due(actor=ACTOR, now=switched)
    assert keys.signing_key().kid == new.kid
    assert published(switched + DAY) == {old.kid, new.kid}
    assert published(switched + DAY + HOUR) == {new.kid}


def test_a_second_rotation_waits_for_the_first() -> None:
    services.bootstrap(now=START)
    keys.rotate(actor=ACTOR, now=START)

    with pytest.raises(RotationUnderWay):
        keys.rotate(actor=ACTOR, now=START + MINUTE)

    assert keys.rotate(actor=ACTOR, now=START + HOUR).status == "published"


def test_tokens_of_a_retired_key_verify_until_they_expire(tenant: Tenant) -> None:
    began = now()
    token = make_token(make_agent(tenant), at=began, ttl=DAY).token
    keys.rotate(actor=ACTOR, now=began)
    keys.promote_due(actor=ACTOR, now=began + 15 * MINUTE)
    keyring.forget()

    assert services.verify(token=token, now=began + DAY - MINUTE).valid
    assert services.verify(token=token, now=began + 30 * DAY).reason is RejectionReason.EXPIRED


@pytest.mark.parametrize("is_next_published", [False, True])
def test_a_compromised_key_stops_at_once(tenant: Tenant, is_next_published: bool) -> None:
    token = make_token(make_agent(tenant)).token
    old = keys.signing_key()
    if is_next_published:
        keys.rotate(actor=ACTOR, now=now())

    new = keys.replace_compromised(actor=ACTOR, now=now())

    assert keys.signing_key().kid == new.kid != old.kid
    assert published(now()) == {new.kid}
    assert services.verify(token=token, now=now()).reason is RejectionReason.UNKNOWN_KEY
    assert services.verify(token=make_token(make_agent(tenant)).token, now=now()).valid


def test_private_halves_are_destroyed_after_their_time() -> None:
    old = services.bootstrap(now=START)
    keys.rotate(actor=ACTOR, now=START)
    keys.promote_due(actor=ACTOR, now=START + 15 * MINUTE)

    assert keys.destroy_ended(now=START + HOUR) == 0
    assert keys.destroy_ended(now=START + 2 * HOUR) == 1
    assert keys.destroy_ended(now=START + 3 * HOUR) == 0
    with pytest.raises(KeyNotFound):
        backend_for(Environment.LIVE).public_key(old.uri)


def test_the_clock_rotates_a_key_that_has_signed_long_enough() -> None:
    old = services.bootstrap(now=START)
    later = START + 90 * DAY

    for moment in (
        START + DAY,
        later,
        later + MINUTE,
        later + 15 * MINUTE,
        later + 2 * HOUR,
        later + 3 * HOUR,
    ):
        keys.maintain(lifetime=90 * DAY, actor=ACTOR, now=moment)

    assert TokenKey.objects.count() == 2
    assert keys.signing_key().kid != old.kid
    assert TokenKey.objects.get(id=old.id).destroyed_at == later + 2 * HOUR


def test_the_task_does_nothing_before_the_first_key() -> None:
    maintain_keys.apply(headers={ENVIRONMENT_HEADER: "live"}, throw=True)

    assert not TokenKey.objects.exists()


@pytest.mark.parametrize("status", ["active", "published"])
def test_there_is_one_active_and_one_next_key(status: str) -> None:
    fields = {
        "uri": "pkcs11:",
        "public_jwk": {},
        "status": status,
        "published_at": START,
        "active_from": START,
    }
    TokenKey.objects.create(kid="a", **fields)

    with pytest.raises(IntegrityError, match="delegation_one_"):
        TokenKey.objects.create(kid="b", **fields)


@pytest.mark.parametrize(
    "fields", [{"status": "new"}, {"status": "active", "retired_at": START}, {"status": "retired"}]
)
def test_status_and_retirement_agree(fields: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match="delegation_key_"):
        TokenKey.objects.create(
            kid="a", uri="pkcs11:", public_jwk={}, published_at=START, active_from=START, **fields
        )


# --- JWKS -----------------------------------------------------------------------------------------


def test_the_jwks_is_plain_and_may_be_cached(api: ApiClient, tenant: Tenant) -> None:
    answer = api.get("/.well-known/jwks.json")

    assert answer.status_code == 200
    assert answer["Cache-Control"] == "public, max-age=600"
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer.json() == {"keys": [keys.signing_key().public_jwk]}
    assert "d" not in answer.json()["keys"][0]


def test_the_sandbox_has_a_jwks_of_its_own(api: ApiClient, tenant: Tenant) -> None:
    live = api.get("/.well-known/jwks.json").json()
    test = api.get("/.well-known/jwks.json?environment=test").json()

    assert live == api.get("/.well-known/jwks.json?environment=live").json()
    assert {key["kid"] for key in live["keys"]}.isdisjoint(key["kid"] for key in test["keys"])


def test_an_unknown_environment_is_refused(api: ApiClient) -> None:
    assert api.get("/.well-known/jwks.json?environment=prod").status_code == 400


# --- Commands -------------------------------------------------------------------------------------


def run(*arguments: str) -> Any:
    out = io.StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_commands_rotate_and_list() -> None:
    first = run("token_key_rotate")
    second = run("token_key_rotate")

    assert (first["status"], second["status"]) == ("active", "published")
    assert [key["kid"] for key in run("token_key_list")] == [second["kid"], first["kid"]]
    assert run("token_key_list", "--environment", "test") == []


def test_command_replaces_a_compromised_key() -> None:
    first = run("token_key_rotate")
    second = run("token_key_rotate", "--compromised")

    assert second["status"] == "active"
    assert TokenKey.objects.get(kid=first["kid"]).status == "withdrawn"
