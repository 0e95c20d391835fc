"""`GET /v1/verify/{serial}`."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.errors import CertificateNotFound
from certificates.models import Certificate
from certificates.pki.serials import format_serial, new_serial
from certificates.public import verification
from certificates.public.verification import validity_at
from certificates.serializers import VerificationSerializer, shown_verification
from certificates.tests.factories import (
    make_authorities,
    make_certificate,
    make_expired_certificate,
    make_held_certificate,
    make_overdue_certificate,
    reinstate_agent,
    revoke_certificate,
)
from compliance.api.rest.parsers import loads
from compliance.api.rest.renderers import dumps
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.stores import sql
from compliance.tests.client import ApiClient
from tenancy.models import Tenant


def make_past_certificate(tenant: Tenant) -> Certificate:
    """One that was valid for ten days and ended ten days ago."""
    certificate = make_certificate(make_agent(tenant))
    start = now() - timedelta(days=20)
    Certificate.objects.filter(id=certificate.id).update(
        not_before=start, issued_at=start, expires_at=start + timedelta(days=10)
    )
    certificate.refresh_from_db()
    return certificate


def verified_at(api: ApiClient, certificate: Certificate, moment: datetime) -> dict[str, Any]:
    answer = api.get(f"/v1/verify/{certificate.serial_number}?at={moment:%Y-%m-%dT%H:%M:%S.%fZ}")
    data: dict[str, Any] = answer.json()["data"]
    return data


def test_certificate_is_verified_without_credentials(api: ApiClient, tenant: Tenant) -> None:
    actions = ["read", "trade"]
    agent = make_agent(tenant, model="gpt-5", version="2", metadata={"permitted_actions": actions})
    certificate = make_certificate(agent)
    Agent.objects.filter(id=agent.id).update(risk_score=0.25)

    answer = api.get(f"/v1/verify/{certificate.serial_number}")

    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    data = answer.json()["data"]
    expected = {
        "serial_number": certificate.serial_number,
        "status": "active",
        "agent_id": str(agent.id),
        "agent_status": "active",
        "operator": "Example Trading GmbH",
        "did": agent.did,
        "model": "gpt-5",
        "model_version": "2",
        "model_hash": "sha256:ab",
        "permitted_actions": actions,
        "scope": {"permitted_actions": actions},
        "scope_declared": True,
        "risk_score": 0.25,
        "risk_band": "low",
        "revoked_at": None,
        "revocation_reason": None,
        "environment": "live",
    }
    assert {name: data[name] for name in expected} == expected
    assert {"issued_at", "expires_at", "not_before", "not_after"} <= set(data)


def test_revocation_shows_on_the_next_call(api: ApiClient, client: ApiClient, tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    assert api.get(f"/v1/verify/{certificate.serial_number}").json()["data"]["status"] == "active"

    client.post(f"/v1/certificates/{certificate.id}/revoke", {"reason": "stolen"})

    data = api.get(f"/v1/verify/{certificate.serial_number}").json()["data"]
    assert (data["status"], data["revocation_reason"]) == ("revoked", "stolen")
    assert data["revoked_at"] is not None


def test_expiry_is_judged_by_time_not_by_the_sweep(api: ApiClient, tenant: Tenant) -> None:
    overdue, expired = make_overdue_certificate(tenant), make_expired_certificate(tenant)

    assert (overdue.status, expired.status) == ("active", "expired")
    for certificate in (overdue, expired):
        assert api.get(f"/v1/verify/{certificate.serial_number}").json()["data"]["status"] == "expired"


def test_what_was_signed_is_answered_not_todays_profile(
    api: ApiClient, client: ApiClient, tenant: Tenant
) -> None:
    certificate = make_certificate(make_agent(tenant, version="1"))
    client.patch(f"/v1/agents/{certificate.agent_id}", {"version": "2"})

    assert api.get(f"/v1/verify/{certificate.serial_number}").json()["data"]["model_version"] == "1"


@pytest.mark.parametrize(
    ("metadata", "declared"),
    [(None, False), ({}, False), ({"scopes": ["all"]}, True), ({"permitted_actions": []}, True)],
)
def test_agent_without_scope_permits_nothing(
    api: ApiClient, tenant: Tenant, metadata: dict[str, object] | None, declared: bool
) -> None:
    certificate = make_certificate(make_agent(tenant, metadata=metadata))

    data = api.get(f"/v1/verify/{certificate.serial_number}").json()["data"]

    assert data["permitted_actions"] == []
    assert data["scope_declared"] is declared


@pytest.mark.parametrize("serial", ["nonsense", "0", "%00", "1" * 500, "\u0661" * 40])
def test_nonsense_is_404(api: ApiClient, serial: str) -> None:
    answer = api.get(f"/v1/verify/{serial}")

    assert (answer.status_code, answer.json()) == (404, {"error": "Certificate not found"})


@pytest.mark.parametrize("environment", Environment)
def test_unknown_serial_is_404(api: ApiClient, environment: Environment) -> None:
    assert api.get(f"/v1/verify/{format_serial(new_serial(environment))}").status_code == 404


def test_cas_own_serial_is_404(api: ApiClient) -> None:
    assert api.get(f"/v1/verify/{make_authorities().serial_number}").status_code == 404


def test_sandbox_certificate_is_found_and_marked(api: ApiClient, tenant: Tenant) -> None:
    with environments.use(Environment.TEST):
        certificate = make_certificate(make_agent(tenant))

    data = api.get(f"/v1/verify/{certificate.serial_number}").json()["data"]

    assert (data["environment"], data["status"]) == ("test", "active")


@pytest.mark.parametrize(("days", "standing"), [(-1, "not_yet_valid"), (1, "valid"), (11, "expired")])
def test_past_moment_is_judged_by_the_validity(
    api: ApiClient, tenant: Tenant, days: int, standing: str
) -> None:
    certificate = make_past_certificate(tenant)

    data = verified_at(api, certificate, certificate.not_before + timedelta(days=days))

    expected = {"valid": standing == "valid", "standing": standing, "revoked_since": False}
    assert {name: data["at"][name] for name in expected} == expected
    assert data["status"] == "expired"


def test_revocation_counts_from_its_moment(api: ApiClient, tenant: Tenant) -> None:
    certificate = make_past_certificate(tenant)
    revoked_at = certificate.not_before + timedelta(days=5)
    Certificate.objects.filter(id=certificate.id).update(
        status="revoked", revoked_at=revoked_at, revocation_reason="stolen", crl_entry=b"0"
    )

    before = verified_at(api, certificate, revoked_at - timedelta(microseconds=1))
    after = verified_at(api, certificate, revoked_at)
    past_its_end = verified_at(api, certificate, certificate.expires_at + timedelta(seconds=1))

    assert (before["status"], before["at"]["standing"], before["at"]["revoked_since"]) == (
        "revoked", "valid", True,
    )  # fmt: skip
    assert (after["at"]["standing"], after["at"]["revoked_since"]) == ("revoked", False)
    assert past_its_end["at"]["standing"] == "revoked"


@pytest.mark.parametrize(
    "at", ["", "yesterday", "2026-02-30T00:00:00Z", "1700000000", "%00", "2999-01-01T00:00:00Z"]
)
def test_bad_moment_is_400(api: ApiClient, at: str) -> None:
    answer = api.get(f"/v1/verify/{format_serial(new_serial(Environment.LIVE))}?at={at}")

    assert (answer.status_code, answer.json()["error"][:8]) == (400, "at must ")


def test_past_hold_is_told_of_moments_during_it(api: ApiClient, tenant: Tenant) -> None:
    certificate = make_held_certificate(tenant)
    held_at = certificate.revoked_at
    assert held_at is not None
    reinstate_agent(certificate.agent)
    released_at = certificate.ended_holds.get().ended_at

    standings = [
        verified_at(api, certificate, moment)["at"]
        for moment in (
            held_at - timedelta(microseconds=1),
            held_at,
            released_at - timedelta(microseconds=1),
            released_at,
        )
    ]

    told = [(standing["standing"], standing["revoked_since"]) for standing in standings]
    assert told == [("valid", False), ("revoked", False), ("revoked", False), ("valid", False)]


@pytest.mark.parametrize("path", ["nonsense", f"{'4' * 40}", f"{'4' * 40}?at=x"])
def test_refusals_are_not_cached_either(api: ApiClient, path: str) -> None:
    assert api.get(f"/v1/verify/{path}")["Cache-Control"] == "no-store"


@pytest.mark.parametrize("environment", Environment)
def test_unknown_serials_of_both_environments_cost_the_same(environment: Environment) -> None:
    serial = format_serial(new_serial(environment))
    queries = {alias: CaptureQueriesContext(connections[alias]) for alias in ("default", "test")}

    with queries["default"], queries["test"], pytest.raises(CertificateNotFound):
        verification.verify(serial=serial, now=now())

    assert sorted(len(captured) for captured in queries.values()) == [0, 1]


def test_rate_limit_is_100_in_60_seconds_with_headers(api: ApiClient) -> None:
    answers = [api.get("/v1/verify/nonsense") for _ in range(101)]

    assert [answer.status_code for answer in answers] == [404] * 100 + [429]
    assert answers[0]["X-RateLimit-Limit"] == "100"
    assert answers[0]["X-RateLimit-Remaining"] == "99"
    assert {"X-RateLimit-Reset", "Retry-After", "X-RateLimit-Remaining"} <= set(answers[100].headers)


def test_statement_is_planned_once(tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    for _ in range(3):
        verification.verify(serial=certificate.serial_number, now=now())

    rows = sql.query(
        "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE %s",
        ["%certificate.serial_number = ANY%"],
    )

    assert len(rows) == 1
    assert rows[0][0] >= 3
    assert rows[0][1] == 0


def test_verify_takes_one_query(tenant: Tenant, django_assert_num_queries) -> None:
    certificate = make_certificate(make_agent(tenant))

    with django_assert_num_queries(1):
        shown_verification(verification.verify(serial=certificate.serial_number, now=certificate.issued_at))


@pytest.mark.parametrize("metadata", [{}, {"permitted_actions": []}, {"permitted_actions": ["read"]}])
@pytest.mark.parametrize("asks_for_the_past", [False, True])
def test_answer_is_as_described(tenant: Tenant, metadata: dict[str, Any], asks_for_the_past: bool) -> None:
    certificate = make_certificate(make_agent(tenant, metadata=metadata))
    if not metadata:
        revoke_certificate(certificate)
    found = verification.verify(serial=certificate.serial_number, now=now())
    if asks_for_the_past:
        found = replace(found, at=validity_at(found.certificate, now()))

    shown = loads(dumps(shown_verification(found)))
    described = VerificationSerializer(data=shown)
    assert described.is_valid(), described.errors
    assert shown.keys() == described.fields.keys() - (set() if asks_for_the_past else {"at"})
