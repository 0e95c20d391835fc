"""Mail to the owners of agents, over SMTP: sent once, after the commit, and again if it failed."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from agents import mailing, services, tasks
from agents.models import Agent, OwnerMail
from agents.tests.factories import ACTOR, make_agent
from agents.tests.mail_servers import REFUSED, MailServer, mail_server
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.stores import redis
from tenancy.models import Tenant

OWNERS = {
    "owner_name": "Kim",
    "owner_email": "kim@example.com",
    "backup_owner_name": "Lee",
    "backup_owner_email": "lee@example.com",
}


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    with mail_server(settings) as running:
        yield running


def suspend(agent: Agent) -> None:
    with environments.atomic():
        locked = Agent.objects.for_tenant(agent.tenant_id).locked().find(agent.id)
        services.suspend(agent=locked, reason="odd\n\nSee https://\u202etrades", actor=ACTOR, now=now())


def tell(agent: Agent, **fields: Any) -> None:
    said: dict[str, Any] = {"what": "new", "text": "It happened.", "now": now()} | fields
    with environments.atomic():
        mailing.tell_owners(agents=[agent], **said)


def test_owner_and_backup_owner_are_told_of_a_stop(server: MailServer, tenant: Tenant) -> None:
    agent = make_agent(tenant, name="bot\nBcc: x@example.com", **OWNERS)
    suspend(agent)

    tasks.send_mails.apply(headers={ENVIRONMENT_HEADER: "live"})

    ((to, message),) = server.taken
    assert to == ["kim@example.com", "lee@example.com"]
    assert message["Subject"] == "Agent bot Bcc: x@example.com is suspended"
    assert "Reason: odd See https:// trades" in message.get_content()
    assert str(agent.id) in message.get_content()
    assert not OwnerMail.objects.exists()


def test_it_is_sent_once_however_often_the_task_runs(server: MailServer, tenant: Tenant) -> None:
    tell(make_agent(tenant, **OWNERS))

    assert [mailing.send_due(now=now()) for _ in range(2)] == [1, 0]
    assert len(server.taken) == 1


def test_a_worker_is_asked_once_it_is_committed(
    server: MailServer, tenant: Tenant, django_capture_on_commit_callbacks: Any
) -> None:
    agent, asked = make_agent(tenant, **OWNERS), redis.key("asked", mailing.SEND)
    redis.client().delete(asked)

    with django_capture_on_commit_callbacks() as callbacks:
        tell(agent)
    assert not redis.client().exists(asked)
    for callback in callbacks:
        callback()

    assert redis.client().exists(asked)


def test_what_a_server_that_is_away_did_not_take_is_sent_later(
    server: MailServer, tenant: Tenant, settings: Any
) -> None:
    port, moment = settings.EMAIL_PORT, now()
    tell(make_agent(tenant, **OWNERS), now=moment)

    settings.EMAIL_PORT = 9
    assert mailing.send_due(now=moment) == 0
    settings.EMAIL_PORT = port

    assert mailing.send_due(now=moment) == 0
    assert mailing.send_due(now=moment + mailing.TRIED_EVERY) == 1
    assert len(server.taken) == 1


def test_mail_for_nobody_holds_up_no_other_and_is_dropped_at_last(server: MailServer, tenant: Tenant) -> None:
    moment = now()
    tell(make_agent(tenant, owner_name="No", owner_email=REFUSED), now=moment)
    tell(make_agent(tenant, **OWNERS), now=moment)

    assert mailing.send_due(now=moment) == 1
    assert OwnerMail.objects.count() == 1
    assert mailing.send_due(now=moment + mailing.GIVEN_UP_AFTER + timedelta(seconds=1)) == 0
    assert not OwnerMail.objects.exists()


def test_nobody_is_told_without_a_server_or_an_owner(
    server: MailServer, tenant: Tenant, settings: Any
) -> None:
    tell(make_agent(tenant))
    settings.EMAIL_HOST = ""
    tell(make_agent(tenant, **OWNERS))
    assert not OwnerMail.objects.exists()


def test_what_waits_is_not_stored_in_clear(server: MailServer, tenant: Tenant) -> None:
    tell(make_agent(tenant, **OWNERS))

    assert b"example" not in bytes(OwnerMail.objects.get().sealed)
