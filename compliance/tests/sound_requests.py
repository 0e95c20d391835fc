"""A row of everything that an endpoint names, and a sound body for every operation that takes one.

The tests over all operations (access, digits, boundaries) ask with these: a new operation needs a line.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.tests.factories import make_entries, seal_and_sign
from certificates.renewing import services as renewing
from certificates.tests.factories import make_authorities, make_carded_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from compliance.tests.console import populate
from delegation.agent_keys.tests.signers import Signer, register
from delegation.issued.status_lists import LIST_SIZE
from delegation.tests.factories import make_token_key
from delegation.token_keys import keyring
from signals.vocabulary import DeliveryMethod
from tenancy.tests.factories import ACTOR, make_key, make_tenant

MOMENT = "2026-01-02T03:04:05Z"
OWNER = {"name": "Kim", "email": "kim@example.com"}
FINANCES = {
    "max_single_trade_usd": 1, "daily_limit_usd": 2, "permitted_instruments": ["BTC-USD"],
    "permitted_venues": ["kraken"], "leverage_permitted": True, "max_leverage_ratio": 2,
}  # fmt: skip


CARD = {
    "url": "https://agents.example/a", "protocol_binding": "GRPC", "streaming": True,
    "input_modes": ["text/plain"], "output_modes": ["text/plain"], "token_schemes": ["dpop"],
    "provider_url": "https://example.com", "documentation_url": "https://example.com/docs",
}  # fmt: skip


@pytest.fixture(scope="module")
def known(world_transaction: None) -> Iterator[tuple[ApiClient, dict[str, str]]]:
    """A client, and by name of the parameter the id of something that is there."""
    keyring.forget()
    tenant = make_tenant()
    make_token_key()
    rows = populate(tenant, Environment.LIVE)
    agent, certificate = rows["agents_agent"], rows["certificates_certificate"]
    carded = make_carded_agent(tenant)
    asked = {"tenant_id": tenant.id, "blueprint_id": rows["agents_blueprint"].id, "agent_ids": None}
    renewal = renewing.begin(**asked, actor=ACTOR, now=now())
    # As old as any time asked for in a query, so that their DIDs resolve.
    Agent.objects.filter(id__in=[carded.id, agent.id]).update(created_at="2025-12-01T00:00:00Z")
    ids = {
        "agent_id": agent.id,
        "token_id": rows["delegation_issuedtoken"].id,
        "list_id": f"live-{rows['delegation_issuedtoken'].status_index // LIST_SIZE}",
        "certificate_id": certificate.id,
        "event_id": rows["events_behaviorevent"].id,
        "webhook_id": rows["webhooks_webhook"].id,
        "stream_id": rows["signals_stream"].id,
        "name_id": rows["otlp_tracedname"].id,
        "key_id": register(agent, Signer().holder).id,
        "tenant_id": tenant.id,
        "issuer_id": rows["issuers_trustedissuer"].id,
        "delivery_id": rows["webhooks_delivery"].id,
        "report_id": rows["reports_report"].id,
        "incident_id": rows["incidents_incident"].id,
        "schedule_id": rows["reports_reportschedule"].id,
        "route_id": rows["gateway_gatewayroute"].id,
        "applies_to": f"agent:{rows['agents_agent'].id}",
        "stop_id": rows["stops_kindstop"].id,
        "blueprint_id": rows["agents_blueprint"].id,
        "differs_from": rows["agents_blueprint"].id,
        "renewal_id": renewal.id,
        "review_id": rows["reviews_accessreview"].id,
        "approval_id": rows["approvals_approval"].id,
        "serial": certificate.serial_number,
        "authority": make_authorities().serial_number,
        "part": "1",
        "did": carded.did,
        "level": "0",
        "path": "000.p/1",
        "entry_id": AuditEntry.objects.for_tenant(tenant.id).order_by("id")[0].id,
    }
    for environment in Environment:
        with environments.use(environment):
            make_entries()
            seal_and_sign()
    with override_settings(SIGNALS_LONG_POLL_SECONDS=0.0):
        yield ApiClient().as_key(make_key(tenant)), {name: str(value) for name, value in ids.items()}


def bodies(ids: dict[str, str]) -> dict[str, Any]:
    """Return a sound body for each operation that takes one, by its operationId."""
    agent_id = ids["agent_id"]
    event = {"agentId": agent_id, "actionType": "api_call"}
    webhook = {"url": "https://hooks.example.com/x", "events": ["risk.alert"]}
    trust = {"issuer": "https://login.example.com", "audiences": ["a"], "required_claims": {"a": ["b"]}}
    stream = {"delivery": {"method": DeliveryMethod.POLL.value}, "events_requested": ["x"]}
    registration = {"name": "a", "model_hash": "h"}
    named = {"source": "service.name", "name": "a", "agent_id": agent_id}
    act = {
        "subject": {"type": "agent", "id": agent_id, "properties": {}},
        "action": {"name": "read", "properties": {}},
        "resource": {"type": "record", "id": "1", "properties": {}},
        "context": {"action_type": "api_call", "details": {}, "token": "x", "approval": "x"},
    }
    reason = {"reason": "x"}
    review = {
        "match": {"all": True}, "reviewer": "kim@example.com", "due_at": "2099-01-01T00:00:00Z",
        "every": "quarter",
    }  # fmt: skip
    return {
        "replaceOwner": {"from": "lee@example.com", "to": OWNER},
        "registerAgent": {**registration, "owner": OWNER, "financial_scope": FINANCES, "agent_card": CARD},
        "updateAgent": {"name": "b", "backup_owner": OWNER, "financial_scope": FINANCES, "agent_card": CARD},
        "suspendAgent": reason, "reinstateAgent": reason, "retireAgent": reason,
        "registerAgentKey": {"jwk": Signer().holder.jwk}, "revokeAgentKey": reason,
        "revokeCertificate": reason, "revokeDelegation": reason,
        "issueDelegation": {"chain": [{"sub": "a", "type": "human"}, {"sub": agent_id, "type": "agent"}]},
        "signMessage": {"payload": {"a": 1}},
        "verifyMessage": {
            "payload": {}, "signature": "AAAA", "certificate_serial": ids["serial"],
        },
        "verifyDelegation": {"token": "x", "audience": "a"},
        "recordEvent": event,
        "recordEvents": {"events": [event]},
        "exportTraces": {}, "mapTracedName": named,
        "reviewEvent": {"verdict": "confirmed"},
        "createWebhook": webhook, "updateWebhook": webhook,
        "createSignalStream": stream,
        "updateSignalStream": {**stream, "stream_id": ids["stream_id"]},
        "setSignalStreamStatus": {"stream_id": ids["stream_id"], "status": "enabled"},
        "verifySignalStream": {"stream_id": ids["stream_id"]},
        "pollSignals": {"maxEvents": 1, "ack": ["x"], "setErrs": {}},
        "createTrustedIssuer": trust, "updateTrustedIssuer": {"audiences": ["a"], "max_age_seconds": 60},
        "recoverWebhook": {"since": "2026-01-01T00:00:00Z"},
        "rotateWebhookSecret": {}, "renewAgentCertificate": {}, "renewCertificate": {},
        "updateIncident": {
            "severity": "low", "note": "n", "attachment": {"name": "a", "size": 1, "sha256": "0" * 64},
        },
        "requestReport": {"type": "mica", "period_start": "2026-01-01", "period_end": "2026-01-31"},
        "createGatewayRoute": {
            "name": "orders", "credentials": ["dpop"], "action": "read", "audience": "a", "root": "any",
            "highest_band": "low", "agents": "own", "nonce_required": False,
        },
        "updateGatewayRoute": {"highest_band": "low"},
        "stopAgents": {
            "match": {"model_hash": "none"}, "reason": "r", "reason_code": "keyCompromise", "revoke": True,
            "dry_run": True,
        },
        "releaseStop": {"reason": "r"},
        "createBlueprint": {"name": "a", "model_hash": "h", "permitted_actions": ["read"], "owner": OWNER,
                            "financial_scope": FINANCES, "ask_policy": {"ask_from": "high"}},
        "updateBlueprint": {"name": "a", "owner": OWNER, "financial_scope": FINANCES,
                            "ask_policy": {"ask_from": "high"}},
        "renewBlueprintAgents": {"all_differing": True},
        "openAccessReview": review, "updateAccessReview": {"every": None},
        "decideAccessReviewItem": {"decision": "reduce", "actions": ["read"]},
        "decideAccessReviewItems": {"agent_ids": [agent_id], "decision": "keep"},
        "openApproval": {
            "agent_id": agent_id, "action": "pay", "action_type": "api_call", "details": {},
            "ttl_seconds": 60,
        },
        "evaluateAccess": act,
        "evaluateAccesses": {
            **act, "evaluations": [act], "options": {"evaluations_semantic": "execute_all"},
        },
        "putApprovalPolicy": {"ask_from": "never", "always_ask": ["pay"], "ttl_seconds": 60},
        "createReportSchedule": {"type": "mica", "cadence": "month"},
        "updateReportSchedule": {"cadence": "month"},
    }  # fmt: skip
