"""`valid_when_signed`: whether a certificate was valid when, by the audit log, a message was signed."""

from datetime import timedelta
from typing import Any

import pytest

from certificates.models import Certificate
from certificates.public import messages
from certificates.tests.factories import revoke_certificate, suspend_agent
from compliance.core.clock import now
from events.tests.conftest import World

PAYLOAD = {"order": 17}


def sign(world: World, **options: Any) -> dict[str, Any]:
    answer = world.api.post(f"/v1/agents/{world.agent.id}/sign", {"payload": PAYLOAD, **options})
    found: dict[str, Any] = answer.json()["data"]
    return found


def check(world: World, **proof: Any) -> tuple[bool, bool | None]:
    data = world.api.post("/v1/verify/message", {"payload": PAYLOAD, **proof}).json()["data"]
    return data["valid"], data["valid_when_signed"]


def raw(signed: dict[str, Any]) -> dict[str, Any]:
    return {name: signed[name] for name in ("signature", "certificate_serial")}


@pytest.mark.parametrize("stop", [revoke_certificate, lambda one: suspend_agent(one.agent)])
def test_signature_from_before_a_stop_was_valid_then(world: World, stop: Any) -> None:
    signed = sign(world)
    before = check(world, **raw(signed))

    stop(Certificate.objects.select_related("agent").get(agent=world.agent))

    assert (before, check(world, **raw(signed))) == ((True, True), (False, True))


def test_certificate_revoked_as_of_before_the_signature_was_not_valid(world: World) -> None:
    signed = sign(world)
    revoke_certificate(Certificate.objects.select_related("agent").get(agent=world.agent))
    past = now() - timedelta(hours=1)
    Certificate.objects.filter(agent=world.agent).update(revoked_at=past, not_before=past)

    assert check(world, **raw(signed)) == (False, False)


def test_what_the_log_does_not_know_is_null(world: World) -> None:
    certificate = Certificate.objects.get(agent=world.agent)
    unlogged = messages.sign_message(certificate=certificate, payload=PAYLOAD)
    serial = certificate.serial_number

    assert check(world, signature=unlogged.signature, certificate_serial=serial) == (True, None)
    sign(world)
    assert check(world, signature="AAAA", certificate_serial=serial) == (False, None)


def test_jws_counts_for_its_audience(world: World) -> None:
    jws = sign(world, audience="https://broker.example")["jws"]
    certificate = Certificate.objects.get(agent=world.agent)
    unlogged = messages.sign_message(certificate=certificate, payload=PAYLOAD, as_jws=True)

    assert check(world, jws=jws, audience="https://broker.example") == (True, True)
    assert check(world, jws=jws) == (False, True)
    assert check(world, jws=unlogged.jws) == (True, None)
