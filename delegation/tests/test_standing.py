"""Whether tokens stand now, by one statement."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates import services as certificates
from certificates.issuing import issuance
from certificates.models import Certificate
from certificates.tests.factories import make_certificate, make_certified_agent, revoke_certificate
from compliance.core import environments
from compliance.core.clock import now
from delegation.jose import tokens
from delegation.jose.tokens import MAX_CHAIN, Delegation
from delegation.models import IssuedToken
from delegation.standing import NotStanding, Standing, standings
from delegation.tests.factories import ACTOR, make_line, make_token
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant


def standing_of(delegation: Delegation) -> Standing:
    (found,) = standings([delegation], now=now())
    return found


def suspend(agent: Agent) -> None:
    certificates.suspend_agent(
        tenant_id=agent.tenant_id, agent_id=agent.id, reason="test", actor=ACTOR, now=now()
    )


def retire(agent: Agent) -> None:
    certificates.retire_agent(
        tenant_id=agent.tenant_id, agent_id=agent.id, reason="test", actor=ACTOR, now=now()
    )


def reinstate(agent: Agent) -> None:
    certificates.reinstate_agent(
        may_undo_stop=True,
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        reason="test",
        actor=ACTOR,
        now=now(),
    )


def revoke(agent: Agent) -> None:
    revoke_certificate(Certificate.objects.get(agent=agent, status="active"))


def renew(agent: Agent) -> None:
    issuance.renew_of_agent(tenant_id=agent.tenant_id, agent_id=agent.id, actor=ACTOR, now=now())


def expire(agent: Agent) -> None:
    past = now() - timedelta(minutes=5)
    Certificate.objects.filter(agent=agent).update(issued_at=past - timedelta(days=1), expires_at=past)


def end(token_id: UUID) -> None:
    IssuedToken.objects.filter(id=token_id).update(
        revoked_at=now(), revoked_by="tests", revocation_reason="test"
    )


def test_a_fresh_token_stands_and_tells_of_its_agent(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant, metadata={"permitted_actions": ["read", "trade"]})
    Agent.objects.filter(id=agent.id).update(risk_score=0.5)
    delegation = make_token(agent, scope="read").delegation

    found = standing_of(delegation)

    assert found == Standing(
        reason=None,
        tenants=[tenant.id],
        permitted=[["read", "trade"]],
        agent_name=agent.name,
        risk_score=0.5,
        highest_risk_score=0.5,
        certificate_serial=Certificate.objects.get(agent=agent).serial_number,
        shortcoming=None,
    )
    assert (found.stands, found.risk_band) == (True, "medium")


@pytest.mark.parametrize(
    ("metadata", "permitted"),
    [
        (None, None),
        ({}, None),
        ({"permitted_actions": []}, []),
        ({"permitted_actions": ["read"]}, ["read"]),
        ({"scopes": ["x"]}, []),
    ],
)
@pytest.mark.parametrize("make", [make_agent, make_certified_agent])
def test_the_permitted_actions_are_those_declared(
    tenant: Tenant, make: Any, metadata: Any, permitted: Any
) -> None:
    agent = make(tenant, metadata=metadata)
    if permitted == []:
        # Such an agent can't delegate: a token of its earlier days.
        delegation = Delegation.of(
            make_token(make_agent(tenant)).delegation.chain,
            issuer="x", environment="live", token_id=UUID(int=1), agent_id=agent.id, issued_at=0,
            not_before=0, expires_at=tokens.LATEST_TIME, scope="",
        )  # fmt: skip
    else:
        delegation = make_token(agent).delegation

    assert standing_of(delegation).permitted_actions == permitted


@pytest.mark.parametrize(
    ("make", "happens", "reason"),
    [
        (make_agent, suspend, NotStanding.AGENT_SUSPENDED),
        (make_agent, retire, NotStanding.AGENT_RETIRED),
        (make_agent, make_certificate, NotStanding.CERTIFICATE_REPLACED),
        (make_certified_agent, suspend, NotStanding.AGENT_SUSPENDED),
        (make_certified_agent, retire, NotStanding.AGENT_RETIRED),
        (make_certified_agent, revoke, NotStanding.CERTIFICATE_REVOKED),
        (make_certified_agent, expire, NotStanding.CERTIFICATE_EXPIRED),
        (make_certified_agent, renew, NotStanding.CERTIFICATE_REPLACED),
    ],
)
def test_what_ends_an_agents_authority_ends_all_that_came_of_it(
    tenant: Tenant, make: Any, happens: Callable[[Agent], Any], reason: NotStanding
) -> None:
    first = make(make_tenant("Other"), name="first")
    line = [one.delegation for one in make_line([first, *(make_agent(tenant) for _ in range(MAX_CHAIN - 1))])]
    before = standings(line, now=now())

    happens(first)

    assert all(found.stands for found in before)
    assert [found.reason for found in standings(line, now=now())] == [reason] * MAX_CHAIN


def test_a_revocation_ends_what_came_of_the_token_and_nothing_before_it(tenant: Tenant) -> None:
    line = [one.delegation for one in make_line([make_agent(tenant) for _ in range(MAX_CHAIN)])]

    for place in range(MAX_CHAIN):
        with environments.atomic():
            end(line[place].token_id)
            reasons = [found.reason for found in standings(line, now=now())]
            transaction.set_rollback(True, using="default")

        after = MAX_CHAIN - place - 1
        assert reasons == [None] * place + [NotStanding.REVOKED] + [NotStanding.PARENT_REVOKED] * after


def test_many_tokens_of_eight_agents_cost_one_statement(tenant: Tenant) -> None:
    line = [one.delegation for one in make_line([make_agent(tenant, name=f"a{n}") for n in range(8)])]

    with CaptureQueriesContext(connections["default"]) as live:
        found = standings(line * 5, now=now())

    assert len(live) == 1
    assert [len(one.tenants) for one in found] == [*range(1, 9)] * 5
    assert all(one.stands for one in found)


def test_nothing_is_asked_for_no_tokens(tenant: Tenant) -> None:
    with CaptureQueriesContext(connections["default"]) as live:
        assert standings([], now=now()) == []

    assert len(live) == 0


def test_the_highest_risk_behind_a_token_is_told(tenant: Tenant) -> None:
    first = make_agent(tenant, name="first")
    *_, last = make_line([first, make_agent(tenant)])
    Agent.objects.filter(id=first.id).update(risk_score=0.9)

    found = standing_of(last.delegation)

    assert (found.risk_score, found.highest_risk_score) == (0.0, 0.9)


def test_an_expired_token_does_not_stand(tenant: Tenant) -> None:
    delegation = make_token(make_agent(tenant), at=now() - timedelta(hours=2)).delegation

    assert standing_of(delegation).reason is NotStanding.EXPIRED


def test_a_token_whose_row_or_agent_is_missing_is_unknown(tenant: Tenant) -> None:
    agent = make_agent(tenant)
    delegation = make_token(agent).delegation
    IssuedToken.objects.all().delete()
    assert standing_of(delegation).reason is NotStanding.UNKNOWN

    claims = {**tokens.to_claims(delegation), "agent_id": str(UUID(int=5))}

    assert standing_of(tokens.from_claims(claims)).reason is NotStanding.UNKNOWN


def test_a_certificate_counts_until_its_last_moment(tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    delegation = make_token(agent, ttl=timedelta(days=1)).delegation
    end = now() + timedelta(minutes=1)
    Certificate.objects.filter(agent=agent).update(expires_at=end)

    reasons = [
        standings([delegation], now=end + late)[0].reason for late in (timedelta(), timedelta(seconds=1))
    ]

    assert reasons == [None, NotStanding.CERTIFICATE_EXPIRED]


def revoke_successor(agent: Agent) -> None:
    revoke_certificate(Certificate.objects.get(agent=agent, superseded_at=None))


def end_overlap(agent: Agent) -> None:
    certificates.supersede_due(now=now() + timedelta(hours=2))


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (suspend, NotStanding.AGENT_SUSPENDED),
        (revoke_successor, NotStanding.CERTIFICATE_REPLACED),
        (end_overlap, NotStanding.CERTIFICATE_REPLACED),
    ],
)
def test_token_stands_while_its_certificate_overlaps_with_the_successor(
    tenant: Tenant, stop: Callable[[Agent], None], reason: NotStanding
) -> None:
    agent = make_certified_agent(tenant)
    delegation = make_token(agent).delegation
    issuance.renew_of_agent(
        tenant_id=tenant.id, agent_id=agent.id, overlap=timedelta(hours=1), actor=ACTOR, now=now()
    )

    before = standing_of(delegation)
    stop(agent)

    assert (before.reason, standing_of(delegation).reason) == (None, reason)
