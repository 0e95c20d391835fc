"""Renewal with overlap: the old certificate stays valid beside its successor, and no stop misses it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates import services
from certificates.issuing.issuance import RENEWAL_PAUSE
from certificates.lists.publication import publish
from certificates.models import Certificate
from certificates.public.did_views import history_of
from certificates.tests.factories import (
    make_certificate,
    make_past_end,
    reinstate_agent,
    retire_agent,
    revoke_certificate,
    stock_pool,
    suspend_agent,
)
from certificates.tests.test_crl_api import read
from certificates.tests.test_holds import fresh
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def stocked() -> None:
    """Renewals find keys in the pool, and wait for none to be generated."""
    stock_pool(3)


@pytest.fixture
def old(tenant: Tenant) -> Certificate:
    return make_certificate(make_agent(tenant), at=now() - HOUR)


@pytest.fixture
def new(client: ApiClient, old: Certificate) -> Certificate:
    """The successor of the old one, with an hour of overlap."""
    return renew(client, old)


def renew(client: ApiClient, old: Certificate, seconds: int = 3600) -> Certificate:
    answer = client.post(f"/v1/agents/{old.agent_id}/renew", {"overlap_seconds": seconds})
    assert answer.status_code == 201, answer.content
    return Certificate.objects.get(id=answer.json()["data"]["id"])


def statuses(api: ApiClient, *certificates: Certificate) -> list[str]:
    return [api.get(f"/v1/verify/{one.serial_number}").json()["data"]["status"] for one in certificates]


def test_both_are_valid_until_the_overlap_is_over(api: ApiClient, old: Certificate, new: Certificate) -> None:
    end = fresh(old).superseded_at
    assert end is not None

    before = statuses(api, old, new)
    counts = [services.supersede_due(now=at) for at in (end - timedelta(seconds=1), end, end)]

    assert before == ["active", "active"]
    assert counts == [0, 1, 0]
    assert statuses(api, old, new) == ["revoked", "active"]
    assert (fresh(old).revocation_code, fresh(old).revoked_at) == ("superseded", end)
    (entry,) = AuditEntry.objects.about(new.id).of_type("certificate.renewed")
    said = entry.metadata or {}
    assert (said["replaces"], said["valid_until"]) == (old.serial_number, end.isoformat())


def test_an_overlap_that_was_revoked_does_not_delay_renewals(
    client: ApiClient, old: Certificate, new: Certificate
) -> None:
    revoke_certificate(new)
    first = make_certificate(old.agent)

    second = renew(client, first)

    assert (fresh(first).status, second.status) == ("active", "active")


def test_overlap_ends_with_a_successor_that_lives_shorter(
    client: ApiClient, old: Certificate, settings: Any
) -> None:
    settings.HIGH_RISK_CERTIFICATE_VALIDITY = timedelta(days=1)
    Agent.objects.filter(id=old.agent_id).update(risk_score=0.9)

    new = renew(client, old, 604_800)

    assert fresh(old).superseded_at == new.expires_at


@pytest.mark.usefixtures("new")
def test_superseded_certificate_cannot_be_renewed(client: ApiClient, old: Certificate) -> None:
    answer = client.post(f"/v1/certificates/{old.id}/renew")

    assert answer.status_code == 409
    assert client.post(f"/v1/agents/{old.agent_id}/certify").status_code == 409


@pytest.mark.usefixtures("new")
def test_renewal_with_overlap_pauses_the_next(client: ApiClient, old: Certificate) -> None:
    answer = client.post(f"/v1/agents/{old.agent_id}/renew", {"overlap_seconds": 60})

    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 60


def test_another_renewal_ends_the_overlap_before(
    client: ApiClient, api: ApiClient, old: Certificate, new: Certificate
) -> None:
    Certificate.objects.filter(id=new.id).update(issued_at=now() - 2 * RENEWAL_PAUSE)

    newest = renew(client, new)

    assert statuses(api, old, new, newest) == ["revoked", "active", "active"]


@pytest.mark.parametrize(
    "stop",
    [
        pytest.param(revoke_certificate, id="revoked"),
        pytest.param(lambda new: suspend_agent(new.agent), id="suspended"),
        pytest.param(lambda new: retire_agent(new.agent), id="retired"),
    ],
)
def test_stop_in_the_overlap_hits_both(
    api: ApiClient, stop: Callable[[Certificate], object], old: Certificate, new: Certificate
) -> None:
    stop(fresh(new))

    assert statuses(api, old, new) == ["revoked", "revoked"]
    assert fresh(old).revocation_code == fresh(new).revocation_code
    publish(authority_id=new.authority_id, actor=ACTOR, now=now())
    listed = {entry.serial_number for entry in read(api.get("/v1/crl"))}
    assert {int(old.serial_number, 16), int(new.serial_number, 16)} <= listed


def test_old_one_can_be_revoked_alone(api: ApiClient, old: Certificate, new: Certificate) -> None:
    revoke_certificate(fresh(old))

    assert statuses(api, old, new) == ["revoked", "active"]


def test_release_within_the_overlap_releases_both(api: ApiClient, old: Certificate, new: Certificate) -> None:
    suspend_agent(fresh(new).agent)

    agent = reinstate_agent(fresh(new).agent)

    assert agent.status == "active"
    assert statuses(api, old, new) == ["active", "active"]


@pytest.mark.parametrize("is_swept", [True, False], ids=["swept", "unswept"])
def test_overlap_that_ends_during_a_hold_is_final(
    api: ApiClient, is_swept: bool, old: Certificate, new: Certificate
) -> None:
    suspend_agent(fresh(new).agent)
    held_at = fresh(old).revoked_at
    later = now() + 2 * HOUR

    swept = services.supersede_due(now=later) if is_swept else 0
    reinstate_agent(fresh(new).agent, at=later)

    assert swept == is_swept
    assert statuses(api, old, new) == ["revoked", "active"]
    assert (fresh(old).revocation_code, fresh(old).revoked_at) == ("superseded", held_at)


def test_overlap_and_successor_that_end_during_a_hold_leave_no_certificate(
    old: Certificate, new: Certificate
) -> None:
    suspend_agent(fresh(new).agent)
    make_past_end(new)

    agent = reinstate_agent(fresh(new).agent, at=now() + 2 * HOUR)

    assert fresh(old).revocation_code == "superseded"
    assert agent.status == "pending"


def test_revoked_while_on_hold_takes_both_for_good(
    client: ApiClient, old: Certificate, new: Certificate
) -> None:
    suspend_agent(fresh(new).agent)

    revoke_certificate(fresh(new))
    agent = reinstate_agent(fresh(new).agent)

    assert agent.status == "pending"
    assert {fresh(old).revocation_code, fresh(new).revocation_code} == {"keyCompromise"}
    assert client.post(f"/v1/agents/{agent.id}/certify").status_code == 201


def test_certificate_that_ends_in_its_overlap_expires(old: Certificate, new: Certificate) -> None:
    make_past_end(old)

    assert services.supersede_due(now=now() + 2 * HOUR) == 0
    assert services.expire_due(now=now()) == 1
    assert (fresh(old).status, fresh(new).status) == ("expired", "active")


def test_database_refuses_a_third(old: Certificate, new: Certificate) -> None:
    with pytest.raises(IntegrityError):
        Certificate.objects.filter(id=new.id).update(superseded_at=fresh(old).superseded_at)


def test_did_document_names_the_successor_at_once(old: Certificate, new: Certificate) -> None:
    versions = history_of(Agent.objects.get(id=old.agent_id), now=now())

    assert [one.certificate_id for one in versions if one.since <= now()][-1] == new.id
    assert [one.since for one in versions] == sorted(one.since for one in versions)
