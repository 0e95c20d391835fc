"""What the audit log tells each stream, in the order of its tree."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from auditlog import services as auditlog
from auditlog.disposal import retention
from auditlog.sealing import sealer
from auditlog.sealing.tree import head
from auditlog.vocabulary import SERVICE_TENANT_ID, AuditAction
from certificates import services as certificates
from certificates.issuing import issuance
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.stores import sql
from delegation.token_keys import keys
from signals import streams
from signals.feed import following
from signals.models import FeedPosition, Signal, Stream
from signals.tests.factories import ACTOR, derive, make_certified_agent, make_poll_stream
from signals.vocabulary import SignalEvent, StreamStatus
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant


def told(stream: Stream) -> list[tuple[str, str]]:
    """Each waiting signal's event, by its last word, and the change if it names one."""
    return [
        (signal.event.rpartition("/")[2], signal.claims["events"][signal.event].get("change_type", ""))
        for signal in Signal.objects.of(stream).waiting()
    ]


def test_certificates_and_stops_are_told_in_their_order(tenant: Tenant) -> None:
    stream = make_poll_stream(tenant)
    agent, _ = make_certified_agent(tenant)
    common: Any = {
        "tenant_id": tenant.id,
        "agent_id": agent.id,
        "reason": "review",
        "actor": ACTOR,
        "now": now(),
    }
    certificates.suspend_agent(**common)
    certificates.reinstate_agent(may_undo_stop=True, **common)
    certificates.retire_agent(**common)

    derive()

    assert told(stream) == [
        ("credential-change", "create"),
        ("session-revoked", ""),
        ("credential-change", "revoke"),
        ("credential-change", "update"),
        ("session-revoked", ""),
        ("credential-change", "revoke"),
    ]


def test_signal_names_subject_serial_time_and_reason(tenant: Tenant) -> None:
    stream = make_poll_stream(tenant)
    agent, certificate = make_certified_agent(tenant)
    derive()
    Signal.objects.of(stream).delete()
    moment = now()
    certificates.retire_agent(tenant_id=tenant.id, agent_id=agent.id, reason="Sold", actor=ACTOR, now=moment)

    derive()

    stopped, revoked = Signal.objects.of(stream).waiting()
    assert stopped.claims["sub_id"] == {"format": "did", "url": str(agent.did)}
    assert stopped.claims["txn"] == str(stopped.entry_id)
    assert stopped.claims["events"][SignalEvent.SESSION_REVOKED.value] == {
        "event_timestamp": int(moment.timestamp()),
        "initiating_entity": "policy",
        "reason_admin": {"en": "Sold"},
    }
    assert revoked.claims["events"][SignalEvent.CREDENTIAL_CHANGE.value] == {
        "event_timestamp": int(moment.timestamp()),
        "initiating_entity": "policy",
        "reason_admin": {"en": "Agent retired: Sold"},
        "credential_type": "x509",
        "change_type": "revoke",
        "x509_serial": certificate.serial_number,
    }


def test_renewal_names_the_new_serial_and_the_end_of_the_old(tenant: Tenant) -> None:
    stream = make_poll_stream(tenant)
    _, certificate = make_certified_agent(tenant)
    renewed = issuance.renew(tenant_id=tenant.id, certificate_id=certificate.id, actor=ACTOR, now=now())

    derive()

    changes = [signal.claims["events"][signal.event] for signal in Signal.objects.of(stream).waiting()]
    serials = {(change["change_type"], change["x509_serial"]) for change in changes}
    assert ("revoke", certificate.serial_number) in serials
    assert ("create", renewed.serial_number) in serials


def test_revoked_token_is_named_by_its_jti(tenant: Tenant) -> None:
    stream, token_id = make_poll_stream(tenant), new_id()
    with environments.atomic():
        auditlog.record(
            tenant_id=tenant.id,
            action=AuditAction.DELEGATION_REVOKED,
            affected_id=new_id(),
            metadata={"token_id": str(token_id)},
            actor=ACTOR,
            now=now(),
        )

    derive()

    (signal,) = Signal.objects.of(stream).waiting()
    assert signal.event == SignalEvent.SESSION_REVOKED
    assert signal.claims["sub_id"]["format"] == "jwt_id"
    assert signal.claims["sub_id"]["jti"] == str(token_id)


def test_withdrawn_token_key_is_told_to_every_stream(tenant: Tenant) -> None:
    mine, other = make_poll_stream(tenant), make_poll_stream(make_tenant())
    kid = keys.signing_key().kid
    keys.replace_compromised(actor=ACTOR, now=now())

    derive()

    for stream in (mine, other):
        (signal,) = Signal.objects.of(stream).waiting()
        assert signal.claims["sub_id"]["id"].endswith(f"#{kid}")


def test_other_tenants_and_the_other_environment_are_told_nothing(tenant: Tenant) -> None:
    other = make_poll_stream(make_tenant())
    with environments.use(Environment.TEST):
        sandbox = make_poll_stream(tenant)
    make_certified_agent(tenant)

    derive()
    with environments.use(Environment.TEST):
        derive()
        assert told(sandbox) == []

    assert told(other) == []


def test_stream_is_told_only_what_it_requested(tenant: Tenant) -> None:
    stream = make_poll_stream(tenant, events_requested=[SignalEvent.SESSION_REVOKED.value, "urn:other"])
    agent, _ = make_certified_agent(tenant)
    certificates.retire_agent(tenant_id=tenant.id, agent_id=agent.id, reason="x", actor=ACTOR, now=now())

    derive()

    assert told(stream) == [("session-revoked", "")]
    assert stream.events_delivered == [SignalEvent.SESSION_REVOKED.value]


def test_what_happened_before_the_first_stream_is_not_told(tenant: Tenant) -> None:
    make_certified_agent(tenant)
    derive()

    stream = make_poll_stream(tenant)
    derive()

    assert told(stream) == []


def test_entries_derived_again_make_no_second_signal(tenant: Tenant) -> None:
    stream = make_poll_stream(tenant)
    start = FeedPosition.objects.get().position
    make_certified_agent(tenant)
    derive()
    before = list(Signal.objects.of(stream).values_list("id", "jti"))

    FeedPosition.objects.update(position=start)
    derive()

    assert list(Signal.objects.of(stream).values_list("id", "jti")) == before


def test_paused_stream_keeps_and_disabled_stream_drops_what_happens(tenant: Tenant) -> None:
    paused, disabled = make_poll_stream(tenant), make_poll_stream(tenant)
    for stream, status in ((paused, StreamStatus.PAUSED), (disabled, StreamStatus.DISABLED)):
        streams.set_status(tenant_id=tenant.id, stream_id=stream.id, status=status, actor=ACTOR, now=now())
    make_certified_agent(tenant)

    derive()

    assert told(paused) == [("credential-change", "create")]
    assert told(disabled) == []


def test_stream_that_nobody_empties_is_disabled_and_says_so(tenant: Tenant, settings: Any) -> None:
    settings.SIGNALS_MOST_WAITING = 1
    stream = make_poll_stream(tenant)
    make_certified_agent(tenant)
    make_certified_agent(tenant)

    derive()

    stream.refresh_from_db()
    assert stream.status == StreamStatus.DISABLED
    assert told(stream) == [("stream-updated", "")]


def test_entries_whose_contents_are_gone_break_no_stream(owned: None, tenant: Tenant) -> None:
    sealer.seal_all()
    # Other tests' entries, which are not so old.
    sql.execute("UPDATE auditlog_treehead SET minimum_index = %s", [head().size])
    agent, _ = make_certified_agent(make_tenant())
    stream = make_poll_stream(agent.tenant)
    long_ago = now() - timedelta(days=settings.AUDIT_RETENTION_DAYS + 1)
    with environments.atomic():
        sql.execute("DELETE FROM auditlog_pendingentry")
        auditlog.record(
            tenant_id=agent.tenant_id,
            action=AuditAction.AGENT_RETIRED,
            affected_id=agent.id,
            actor=ACTOR,
            now=long_ago,
        )
    sealer.seal_all()
    assert retention.drop_expired(actor=ACTOR, now=now()) == 1

    make_certified_agent(agent.tenant)
    derive()

    assert told(stream) == [("credential-change", "create")]


@pytest.mark.parametrize("metadata", [None, {}, {"agent_id": "no id"}, {"agent_id": [1], "serial_number": 3}])
def test_entry_that_names_no_subject_is_passed_over(tenant: Tenant, metadata: Any) -> None:
    stream = make_poll_stream(tenant)
    with environments.atomic():
        for owner, action in (
            (tenant.id, AuditAction.CERTIFICATE_REVOKED),
            (tenant.id, AuditAction.AGENT_RETIRED),
            (SERVICE_TENANT_ID, AuditAction.TOKEN_KEY_RETIRED),
        ):
            named: Any = {"affected_id": "none", "metadata": metadata}
            auditlog.record(tenant_id=owner, action=action, **named, actor=ACTOR, now=now())

    derive()

    assert told(stream) == []
    assert following.follow(now=now()) == 0
