"""Halt receipts: what they state, who verifies them, and what they refuse."""

from typing import Any

import pytest
from django.conf import settings

from agentid.errors import NotValid, Reason
from agentid.verify import RecordKind, verify_record
from agentid.verify.key_sets import read_keys
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent, suspend_agent
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from delegation.stops.models import KindStop
from delegation.stops.tests.factories import make_crowd, make_stop
from delegation.tests.factories import make_token
from delegation.token_keys import keys
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR


@pytest.fixture
def stop(tenant: Tenant) -> KindStop:
    make_crowd(tenant, 4)
    make_agent(tenant)
    suspend_agent(make_certified_agent(tenant))
    return make_stop(tenant)


def receipt_of(client: ApiClient, stop: KindStop) -> dict[str, Any]:
    answer = client.get(f"/v1/stops/{stop.id}/receipt")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()["data"]
    return found


def verified(client: ApiClient, receipt: str, lines: Any) -> Any:
    published = read_keys(client.get("/.well-known/jwks.json").json())
    return verify_record(receipt, lines, kind=RecordKind.HALT, keys=published, issuer=settings.TOKEN_ISSUER)


def test_a_receipt_states_what_was_stopped(client: ApiClient, stop: KindStop, tenant: Tenant) -> None:
    found = receipt_of(client, stop)

    claims = verified(client, **found)

    assert (claims["stop_id"], claims["tenant_id"]) == (str(stop.id), str(tenant.id))
    assert (claims["reason"], claims["reason_code"], claims["env"]) == ("drill", "certificateHold", "live")
    assert [claims[name] for name in ("count", "stopped", "skipped", "failed")] == [6, 5, 1, 0]
    told = {line["serial"]: line["outcome"] for line in found["lines"] if line["serial"]}
    held = Certificate.objects.filter(agent__stopped_by_strikes=None, revocation_code="certificateHold")
    assert set(told.values()) == {"stopped"}
    assert told.keys() < set(held.values_list("serial_number", flat=True))
    assert sum(line["stopped_at"] is None for line in found["lines"]) == 1
    entry = AuditEntry.objects.for_tenant(tenant.id).get(event_type="stop.done")
    assert (entry.metadata or {})["root"] == claims["root"]


def test_a_receipt_is_signed_once_while_its_key_is_published(client: ApiClient, stop: KindStop) -> None:
    first = receipt_of(client, stop)

    assert receipt_of(client, stop) == first
    keys.replace_compromised(actor=ACTOR, now=now())
    again = receipt_of(client, stop)

    assert again["receipt"] != first["receipt"]
    assert again["lines"] == first["lines"]
    assert verified(client, **again)
    with pytest.raises(NotValid) as error:
        verified(client, **first)
    assert error.value.reason is Reason.UNKNOWN_KEY


def test_other_lines_are_refused(client: ApiClient, stop: KindStop) -> None:
    receipt, lines = (receipt_of(client, stop)[name] for name in ("receipt", "lines"))
    changed = [{**lines[0], "outcome": "skipped"}, *lines[1:]]

    for wrong in (lines[1:], [*lines, lines[0]], lines[::-1], changed, []):
        with pytest.raises(NotValid) as error:
            verified(client, receipt, wrong)
        assert error.value.reason is Reason.NOT_AS_SEALED


def test_a_delegation_token_is_no_receipt(client: ApiClient, tenant: Tenant) -> None:
    with pytest.raises(NotValid) as error:
        verified(client, make_token(make_agent(tenant)).token, [])
    assert error.value.reason is Reason.MALFORMED


def test_a_stop_of_nobody_has_a_receipt(client: ApiClient, tenant: Tenant) -> None:
    assert verified(client, **receipt_of(client, make_stop(tenant)))["count"] == 0
