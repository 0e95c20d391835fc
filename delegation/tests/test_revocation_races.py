"""A revocation and what happens at the same time: handing on, another revocation."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.clock import now
from compliance.tests.threads import all_at_once, at_once, in_thread, somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from delegation import services
from delegation.errors import ParentTokenRevoked
from delegation.issuing.issuance import IssuedDelegation
from delegation.models import IssuedToken
from delegation.standing import standings
from delegation.tests.factories import ACTOR, CHAIN, as_chain, make_token
from delegation.token_keys import keys
from tenancy.tests.factories import make_tenant

pytestmark = pytest.mark.usefixtures("committed")

LONGER = as_chain([*CHAIN, {"sub": "quote-service", "type": "service"}])


@pytest.fixture
def agent() -> Agent:
    keys.bootstrap(actor=ACTOR, now=now())
    return make_agent(make_tenant())


def revoke(issued: IssuedDelegation, agent: Agent) -> IssuedToken:
    return services.revoke(
        tenant_id=agent.tenant_id,
        token_id=issued.delegation.token_id,
        reason="test",
        actor=ACTOR,
        now=now(),
    )


def test_a_token_is_not_handed_on_while_it_is_being_revoked(agent: Agent) -> None:
    parent = make_token(agent)
    begun = Event()

    def hand_on() -> Any:
        begun.set()
        return make_token(agent, chain=LONGER, parent_token=parent.token)

    with ThreadPoolExecutor(1) as pool:
        with environments.atomic():
            revoke(parent, agent)
            handing_on = pool.submit(in_thread, hand_on)
            begun.wait(10)
            assert eventually(somebody_waits_for_a_lock, seconds=20)

        assert isinstance(handing_on.result(), ParentTokenRevoked)
    assert not IssuedToken.objects.filter(parent_token_id=parent.delegation.token_id).exists()


@pytest.mark.parametrize("attempt", range(5))
def test_whichever_comes_first_no_child_stands_after_the_revocation(agent: Agent, attempt: int) -> None:
    parent = make_token(agent)
    hand_on = partial(make_token, agent, chain=LONGER, parent_token=parent.token)

    outcomes = all_at_once([hand_on, partial(revoke, parent, agent), hand_on])

    children = [one.delegation for one in outcomes if isinstance(one, IssuedDelegation)]
    assert [one.stands for one in standings([parent.delegation, *children], now=now())] == [False] * (
        1 + len(children)
    )
    refused = [one for one in outcomes if isinstance(one, ParentTokenRevoked)]
    assert len(children) + len(refused) == 2


def test_revocations_at_once_are_one(agent: Agent) -> None:
    issued = make_token(agent)

    found = at_once(partial(revoke, issued, agent))

    assert len({row.revoked_at for row in found}) == 1
    assert AuditEntry.objects.about(agent.id).filter(event_type="delegation.revoked").count() == 1
