# mypy: disable-error-code=empty-body
"""An operation for each endpoint, in groups, generated from the OpenAPI description by deploy/release."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Generic

from agentid.client.generated import results
from agentid.client.operation import FORM, UNSET, Group, S, Unset, listing, operation
from agentid.client.transport import Prove


class Agents(Group[S]):
    @operation("GET", "/1.0/identifiers/{did}", bare=True, camel=True)
    def resolve(
        self, did: str, *, version_id: str | None = None, version_time: datetime | str | None = None
    ) -> Mapping[str, Any]:
        """Resolve an agent's decentralized identifier."""

    @operation("GET", "/v1/agent-cards/{did}", bare=True)
    def card(self, did: str) -> Mapping[str, Any]:
        """The signed A2A card of an agent that publishes one."""

    @listing("/v1/agents")
    def list(
        self, *, before: datetime | str | None = None, blueprint_id: str | None = None,
        differs_from: str | None = None, dormant: bool | None = None, limit: int | None = None,
        model_hash: str | None = None, orphaned: bool | None = None, owner: str | None = None,
        q: str | None = None, status: str | None = None
    ) -> results.Agent:
        """List agents, newest first."""

    @operation("POST", "/v1/agents")
    def register(
        self, name: str, *, model: str | None = None, version: str | None = None,
        owner: Mapping[str, Any] | None = None, backup_owner: Mapping[str, Any] | None = None,
        financial_scope: Mapping[str, Any] | None = None, alarm_budget: float | None = None,
        validity_days: int | None = None, description: str | None = None, inbox_address: str | None = None,
        agent_card: Mapping[str, Any] | None = None, metadata: Mapping[str, Any] | None = None,
        enforcement: str | None = None, model_hash: str | None = None, blueprint_id: str | None = None,
        idempotency_key: str = ""
    ) -> results.Agent:
        """Register an agent."""

    @operation("GET", "/v1/agents/{agent_id}")
    def get(self, agent_id: str) -> results.Agent:
        """Fetch an agent."""

    @operation("PATCH", "/v1/agents/{agent_id}")
    def update(
        self, agent_id: str, *, model: str | Unset | None = UNSET, version: str | Unset | None = UNSET,
        owner: Mapping[str, Any] | Unset | None = UNSET,
        backup_owner: Mapping[str, Any] | Unset | None = UNSET,
        financial_scope: Mapping[str, Any] | Unset | None = UNSET, alarm_budget: float | Unset | None = UNSET,
        validity_days: int | Unset | None = UNSET, description: str | Unset | None = UNSET,
        inbox_address: str | Unset | None = UNSET, agent_card: Mapping[str, Any] | Unset | None = UNSET,
        metadata: Mapping[str, Any] | Unset | None = UNSET, enforcement: str | Unset | None = UNSET,
        name: str | Unset = UNSET, model_hash: str | Unset = UNSET
    ) -> results.UpdatedAgent:
        """Edit an agent's profile."""

    @operation("POST", "/v1/agents/{agent_id}/certify")
    def certify(self, agent_id: str, *, idempotency_key: str = "") -> results.Certificate:
        """Issue a certificate for an agent."""

    @operation("POST", "/v1/agents/{agent_id}/reinstate")
    def reinstate(self, agent_id: str, reason: str) -> results.Agent:
        """Reinstate a suspended agent."""

    @operation("POST", "/v1/agents/{agent_id}/renew")
    def renew(
        self, agent_id: str, *, overlap_seconds: int | None = None, idempotency_key: str = ""
    ) -> results.Certificate:
        """Issue a successor of the agent's active certificate."""

    @operation("POST", "/v1/agents/{agent_id}/retire")
    def retire(self, agent_id: str, reason: str) -> results.Agent:
        """Retire an agent for good."""

    @operation("POST", "/v1/agents/{agent_id}/suspend")
    def suspend(self, agent_id: str, reason: str) -> results.Agent:
        """Suspend an agent and put its certificate on hold."""

    @operation("GET", "/v1/agents/{agent_id}/attestation")
    def attestation(self, agent_id: str, *, at: datetime | str | None = None) -> results.Attestation:
        """Attest how an agent stands or stood."""

    @operation("GET", "/v1/agents/{agent_id}/attestation/pdf", accept="application/pdf")
    def attestation_pdf(self, agent_id: str, *, at: datetime | str | None = None) -> bytes:
        """Attest how an agent stands or stood, as a PDF of one page."""

    @operation("GET", "/v1/agents/{agent_id}/attestation/bundle", accept="application/zip")
    def attestation_bundle(self, agent_id: str, *, at: datetime | str | None = None) -> bytes:
        """Attest it in a signed bundle, checked as a report's."""

    @operation("GET", "/v1/agents/{agent_id}/credential")
    def credential(self, agent_id: str) -> results.AgentCredential:
        """Fetch an agent's verifiable credential."""

    @operation("GET", "/v1/agents/{agent_id}/usage")
    def usage(
        self, agent_id: str, *, period_end: datetime | str | None = None,
        period_start: datetime | str | None = None
    ) -> results.Usage:
        """Fetch the actions that an agent used, did not use, or was refused."""


class ApprovalPolicies(Group[S]):
    @operation("GET", "/v1/approval-policies")
    def list(self) -> tuple[results.AskPolicy, ...]:
        """List approval policies, oldest first."""

    @operation("GET", "/v1/approval-policies/{applies_to}")
    def get(self, applies_to: str) -> results.AskPolicy:
        """Fetch an approval policy."""

    @operation("PUT", "/v1/approval-policies/{applies_to}", repeatable=True)
    def set(
        self, applies_to: str, ask_from: str, *, always_ask: Sequence[str] | None = None,
        ttl_seconds: int | None = None
    ) -> results.AskPolicy:
        """Set an approval policy."""

    @operation("DELETE", "/v1/approval-policies/{applies_to}", repeatable=True)
    def delete(self, applies_to: str) -> None:
        """Remove an approval policy."""


class Approvals(Group[S]):
    @listing("/v1/approvals")
    def list(
        self, *, agent_id: str | None = None, before: datetime | str | None = None, limit: int | None = None,
        status: str | None = None
    ) -> results.Approval:
        """List approvals, newest first."""

    @operation("POST", "/v1/approvals")
    def open(
        self, *, agent_id: str, action: str, action_type: str | None = None,
        details: Mapping[str, Any] | None = None, ttl_seconds: int | None = None, idempotency_key: str = ""
    ) -> results.ApprovalDetail:
        """Ask for an approval."""

    @operation("GET", "/v1/approvals/{approval_id}")
    def get(self, approval_id: str, *, wait: int | None = None) -> results.ApprovalDetail:
        """Fetch an approval, or wait for its decision."""


class AuditLog(Group[S]):
    @listing("/v1/audit-log")
    def list(
        self, *, action: str | None = None, actor_id: str | None = None, actor_kind: str | None = None,
        actor_type: str | None = None, affected_id: str | None = None, after: datetime | str | None = None,
        before: datetime | str | None = None, event_type: str | None = None, limit: int | None = None,
        order: str | None = None
    ) -> results.AuditEntry:
        """Query the audit log."""

    @operation("GET", "/v1/audit-log/{entry_id}/proof", accept="text/plain")
    def proof(self, entry_id: str) -> str:
        """An entry's proof, to verify offline."""

    @operation("GET", "/v1/audit-log/export", accept="application/jsonl")
    def export(
        self, *, action: str | None = None, actor_id: str | None = None, actor_kind: str | None = None,
        actor_type: str | None = None, affected_id: str | None = None, after: datetime | str | None = None,
        before: datetime | str | None = None, event_type: str | None = None, format_: str | None = None
    ) -> bytes:
        """Export the audit log with proofs."""

    @operation("GET", "/v1/audit-log/checkpoint", accept="text/plain")
    def checkpoint(self) -> str:
        """The newest checkpoint."""

    @operation("GET", "/v1/audit-log/consistency")
    def consistency(self, *, from_: int | None = None, to: int | None = None) -> results.Consistency:
        """Prove that one tree begins with another."""

    @operation("GET", "/v1/audit-log/keys", accept="text/plain")
    def keys(self) -> str:
        """The log's verifier keys."""

    @operation("GET", "/v1/audit-log/status")
    def status(self) -> results.LogState:
        """How far the log is sealed, signed and witnessed."""

    @operation("GET", "/v1/audit-log/tile/{level}/{path}", accept="application/octet-stream")
    def tile(self, level: int, path: str) -> bytes:
        """A tile of hashes."""

    @operation("GET", "/v1/audit-log/tile/entries/{path}", accept="application/octet-stream")
    def entries(self, path: str) -> bytes:
        """A bundle of leaves."""

    @operation("GET", "/v1/audit-log/test/checkpoint", accept="text/plain")
    def sandbox_checkpoint(self) -> str:
        """The newest checkpoint."""

    @operation("GET", "/v1/audit-log/test/consistency")
    def sandbox_consistency(self, *, from_: int | None = None, to: int | None = None) -> results.Consistency:
        """Prove that one tree begins with another."""

    @operation("GET", "/v1/audit-log/test/keys", accept="text/plain")
    def sandbox_keys(self) -> str:
        """The log's verifier keys."""

    @operation("GET", "/v1/audit-log/test/status")
    def sandbox_status(self) -> results.LogState:
        """How far the log is sealed, signed and witnessed."""

    @operation("GET", "/v1/audit-log/test/tile/{level}/{path}", accept="application/octet-stream")
    def sandbox_tile(self, level: int, path: str) -> bytes:
        """A tile of hashes."""

    @operation("GET", "/v1/audit-log/test/tile/entries/{path}", accept="application/octet-stream")
    def sandbox_entries(self, path: str) -> bytes:
        """A bundle of leaves."""


class AccessReviews(Group[S]):
    @listing("/v1/access-reviews")
    def list(self, *, before: datetime | str | None = None, limit: int | None = None) -> results.AccessReview:
        """List access reviews, newest first."""

    @operation("POST", "/v1/access-reviews")
    def open(
        self, *, match: Mapping[str, Any], reviewer: str, due_at: datetime | str, every: str | None = None,
        idempotency_key: str = ""
    ) -> results.AccessReview:
        """Open a review of what agents may do."""

    @operation("GET", "/v1/access-reviews/{review_id}")
    def get(self, review_id: str) -> results.AccessReview:
        """Fetch an access review."""

    @operation("PATCH", "/v1/access-reviews/{review_id}")
    def update(self, review_id: str, *, every: str | Unset | None = UNSET) -> results.AccessReview:
        """Repeat an access review each quarter, or no longer."""

    @listing("/v1/access-reviews/{review_id}/items")
    def items(
        self, review_id: str, *, before: datetime | str | None = None, limit: int | None = None
    ) -> results.AccessReviewItem:
        """List the agents of an access review."""

    @operation("POST", "/v1/access-reviews/{review_id}/items/{agent_id}")
    def decide(
        self, review_id: str, agent_id: str, decision: str, *, note: str | None = None,
        actions: Sequence[str] | None = None
    ) -> results.AccessReviewItem:
        """Decide on an agent of an access review."""

    @operation("POST", "/v1/access-reviews/{review_id}/items")
    def decide_all(
        self, review_id: str, *, decision: str, agent_ids: Sequence[str], note: str | None = None
    ) -> tuple[results.AccessReviewItem, ...]:
        """Decide on many agents of an access review."""

    @operation("GET", "/v1/access-reviews/{review_id}/record")
    def record(self, review_id: str) -> results.AccessReviewRecord:
        """Fetch the signed record of a finished access review."""


class AgentKeys(Group[S]):
    @operation("GET", "/v1/agents/{agent_id}/keys")
    def list(self, agent_id: str) -> tuple[results.AgentKey, ...]:
        """List an agent's keys, newest first."""

    @operation("POST", "/v1/agents/{agent_id}/keys")
    def register(
        self, agent_id: str, jwk: Mapping[str, Any], *, proof: str | Prove | None = None
    ) -> results.AgentKey:
        """Register a key by which an agent signs requests."""

    @operation("POST", "/v1/agents/{agent_id}/keys/{key_id}/revoke")
    def revoke(self, agent_id: str, key_id: str, reason: str) -> results.AgentKey:
        """Revoke a key of an agent."""

    @operation(
        "GET", "/v1/key-directories/{tenant_id}", accept="application/http-message-signatures-directory+json",
        bare=True
    )
    def directory(self, tenant_id: str, *, environment: str | None = None) -> Mapping[str, Any]:
        """The keys of a tenant's agents."""


class Authorities(Group[S]):
    @operation("GET", "/v1/ca")
    def list(self, *, environment: str | None = None) -> results.Chain:
        """The CA certificates of an environment."""

    @operation("GET", "/v1/ca/{serial}", accept="application/pkix-cert")
    def get(self, serial: str) -> bytes:
        """One CA certificate."""

    @operation("GET", "/v1/crl", accept="application/pkix-crl")
    def crl(self, *, environment: str | None = None) -> bytes:
        """The current certificate revocation list."""

    @operation("GET", "/v1/crl/{serial}", accept="application/pkix-crl")
    def crl_of(self, serial: str) -> bytes:
        """The revocation list of one CA."""

    @operation("GET", "/v1/crl/{serial}/{part}", accept="application/pkix-crl")
    def crl_part(self, serial: str, part: str) -> bytes:
        """One shard of a CA's revocation list, or its delta."""

    @operation(
        "POST", "/v1/ocsp", accept="application/ocsp-response", body="application/ocsp-request",
        repeatable=True
    )
    def ocsp(self, request: bytes) -> bytes:
        """Ask for the status of certificates by OCSP."""

    @operation("GET", "/v1/ocsp/{encoded}", accept="application/ocsp-response")
    def ocsp_by_address(self, encoded: str) -> bytes:
        """Ask for the status of certificates by OCSP, in the address."""


class Blueprints(Group[S]):
    @listing("/v1/blueprints")
    def list(self, *, before: datetime | str | None = None, limit: int | None = None) -> results.Blueprint:
        """List blueprints, newest first."""

    @operation("POST", "/v1/blueprints")
    def create(
        self, name: str, *, model: str | None = None, version: str | None = None,
        owner: Mapping[str, Any] | None = None, backup_owner: Mapping[str, Any] | None = None,
        financial_scope: Mapping[str, Any] | None = None, alarm_budget: float | None = None,
        validity_days: int | None = None, model_hash: str | None = None,
        permitted_actions: Sequence[str] | None = None, ask_policy: Mapping[str, Any] | None = None,
        idempotency_key: str = ""
    ) -> results.Blueprint:
        """Create a blueprint."""

    @operation("GET", "/v1/blueprints/{blueprint_id}")
    def get(self, blueprint_id: str) -> results.ChangedBlueprint:
        """Fetch a blueprint."""

    @operation("PATCH", "/v1/blueprints/{blueprint_id}")
    def update(
        self, blueprint_id: str, *, model: str | Unset | None = UNSET, version: str | Unset | None = UNSET,
        owner: Mapping[str, Any] | Unset | None = UNSET,
        backup_owner: Mapping[str, Any] | Unset | None = UNSET,
        financial_scope: Mapping[str, Any] | Unset | None = UNSET, alarm_budget: float | Unset | None = UNSET,
        validity_days: int | Unset | None = UNSET, model_hash: str | Unset | None = UNSET,
        permitted_actions: Sequence[str] | Unset | None = UNSET,
        ask_policy: Mapping[str, Any] | Unset | None = UNSET, name: str | Unset = UNSET
    ) -> results.ChangedBlueprint:
        """Change a blueprint."""

    @operation("POST", "/v1/blueprints/{blueprint_id}/renew")
    def renew(
        self, blueprint_id: str, *, agent_ids: Sequence[str] | None = None, all_differing: bool | None = None,
        idempotency_key: str = ""
    ) -> results.BlueprintRenewal:
        """Bring agents up to date with their blueprint."""

    @operation("GET", "/v1/blueprint-renewals/{renewal_id}")
    def renewal(self, renewal_id: str) -> results.BlueprintRenewal:
        """Fetch a renewal of a blueprint's agents."""


class Certificates(Group[S]):
    @listing("/v1/certificates")
    def list(
        self, *, agent_id: str | None = None, before: datetime | str | None = None,
        expires_after: datetime | str | None = None, expires_before: datetime | str | None = None,
        limit: int | None = None, status: str | None = None
    ) -> results.Certificate:
        """List certificates, newest first."""

    @operation("GET", "/v1/certificates/{certificate_id}")
    def get(self, certificate_id: str) -> results.Certificate:
        """Fetch a certificate."""

    @operation("POST", "/v1/certificates/{certificate_id}/renew")
    def renew(
        self, certificate_id: str, *, overlap_seconds: int | None = None, idempotency_key: str = ""
    ) -> results.Certificate:
        """Issue a successor and supersede this certificate."""

    @operation("POST", "/v1/certificates/{certificate_id}/revoke")
    def revoke(self, certificate_id: str, reason: str) -> results.Revocation:
        """Revoke a certificate."""

    @operation("GET", "/v1/verify/{serial}")
    def verify(self, serial: str, *, at: datetime | str | None = None) -> results.Verification:
        """Verify a certificate by its serial number."""


class Decisions(Group[S]):
    @operation("GET", "/.well-known/authzen-configuration", bare=True)
    def configuration(self) -> results.AuthzenConfiguration:
        """Where decisions are made."""

    @operation("POST", "/access/v1/evaluation", bare=True, repeatable=True)
    def evaluate(
        self, *, subject: Mapping[str, Any], action: Mapping[str, Any], resource: Mapping[str, Any],
        context: Mapping[str, Any] | None = None
    ) -> results.AccessDecision:
        """Decide whether an agent may do something."""

    @operation("POST", "/access/v1/evaluations", bare=True, repeatable=True)
    def evaluate_all(
        self, *, subject: Mapping[str, Any] | None = None, action: Mapping[str, Any] | None = None,
        resource: Mapping[str, Any] | None = None, context: Mapping[str, Any] | None = None,
        evaluations: Sequence[Any] | None = None, options: Mapping[str, Any] | None = None
    ) -> results.AccessDecisions:
        """Decide on several acts."""


class Delegation(Group[S]):
    @operation("GET", "/.well-known/jwks.json", bare=True)
    def jwks(self, *, environment: str | None = None) -> Mapping[str, Any]:
        """The public keys that verify delegation tokens."""

    @operation("POST", "/v1/agents/{agent_id}/delegation")
    def issue(
        self, agent_id: str, chain: Sequence[Mapping[str, Any]], *, scope: str | None = None,
        audience: str | None = None, ttl_seconds: int | None = None, parent_token: str | None = None,
        dpop_jkt: str | None = None, proof: str | Prove | None = None, idempotency_key: str = ""
    ) -> results.Delegation:
        """Issue a delegation token."""

    @operation("POST", "/v1/delegation/verify", repeatable=True)
    def verify(self, token: str, *, audience: str | None = None) -> results.DelegationVerdict:
        """Verify a delegation token."""

    @listing("/v1/delegations")
    def list(
        self, *, active: bool | None = None, agent_id: str | None = None,
        before: datetime | str | None = None, limit: int | None = None
    ) -> results.IssuedToken:
        """List issued delegation tokens, newest first."""

    @operation("GET", "/v1/delegations/{token_id}")
    def get(self, token_id: str) -> results.IssuedToken:
        """Fetch an issued delegation token."""

    @operation("POST", "/v1/delegations/{token_id}/revoke")
    def revoke(self, token_id: str, reason: str) -> results.IssuedToken:
        """Revoke a delegation token and all that came of it."""

    @operation("GET", "/v1/status-lists/{list_id}", accept="application/statuslist+jwt")
    def status_list(self, list_id: str) -> str:
        """The statuses of issued tokens as a signed list."""


class Events(Group[S]):
    @listing("/v1/events")
    def list(
        self, *, action_type: str | None = None, after: datetime | str | None = None,
        agent_id: str | None = None, band: str | None = None, before: datetime | str | None = None,
        format_: str | None = None, limit: int | None = None, order: str | None = None
    ) -> results.BehaviorEvent:
        """List events, newest first or as a feed."""

    @operation("POST", "/v1/events", camel=True)
    def record(
        self, *, agent_id: str, action_type: str, details: Mapping[str, Any] | None = None,
        occurred_at: datetime | str | None = None, session_id: str | None = None, chain_id: str | None = None,
        decision_id: str | None = None, idempotency_key: str = ""
    ) -> results.BehaviorEvent:
        """Record an agent's action and score its risk."""

    @operation("GET", "/v1/events/{event_id}")
    def get(self, event_id: str) -> results.ExplainedEvent:
        """Fetch an event and why it scored as it did."""

    @operation("POST", "/v1/events/{event_id}/review")
    def review(
        self, event_id: str, verdict: str, *, note: str | None = None, idempotency_key: str = ""
    ) -> results.EventReview:
        """Say what an event was: part of an attack, or ordinary after all."""

    @operation("POST", "/v1/events/batch")
    def record_batch(
        self, events: Sequence[Mapping[str, Any]], *, idempotency_key: str = ""
    ) -> tuple[results.BatchResult, ...]:
        """Record up to 1,000 actions at once."""


class GatewayRoutes(Group[S]):
    @operation("GET", "/v1/gateway/routes")
    def list(self) -> tuple[results.GatewayRoute, ...]:
        """List gateway routes by name."""

    @operation("POST", "/v1/gateway/routes")
    def create(
        self, *, name: str, credentials: Sequence[str], action: str | None = None,
        audience: str | None = None, highest_band: str | None = None, root: str | None = None,
        agents: str | None = None, nonce_required: bool | None = None, uncertified_agents: bool | None = None,
        idempotency_key: str = ""
    ) -> results.GatewayRoute:
        """Create a gateway route."""

    @operation("GET", "/v1/gateway/routes/{route_id}")
    def get(self, route_id: str) -> results.GatewayRoute:
        """Fetch a gateway route."""

    @operation("PATCH", "/v1/gateway/routes/{route_id}")
    def update(
        self, route_id: str, *, action: str | Unset | None = UNSET, audience: str | Unset | None = UNSET,
        highest_band: str | Unset = UNSET, root: str | Unset = UNSET, agents: str | Unset = UNSET,
        nonce_required: bool | Unset = UNSET, uncertified_agents: bool | Unset = UNSET,
        name: str | Unset = UNSET, credentials: Sequence[str] | Unset = UNSET
    ) -> results.GatewayRoute:
        """Edit a gateway route."""

    @operation("DELETE", "/v1/gateway/routes/{route_id}", repeatable=True)
    def delete(self, route_id: str) -> None:
        """Delete a gateway route."""


class Incidents(Group[S]):
    @listing("/v1/incidents")
    def list(
        self, *, agent_id: str | None = None, before: datetime | str | None = None, limit: int | None = None,
        severity: str | None = None, state: str | None = None
    ) -> results.Incident:
        """List incidents, newest first."""

    @operation("GET", "/v1/incidents/{incident_id}")
    def get(self, incident_id: str) -> results.IncidentDetail:
        """Fetch an incident."""

    @operation("PATCH", "/v1/incidents/{incident_id}")
    def update(
        self, incident_id: str, *, title: str | Unset = UNSET, state: str | Unset = UNSET,
        severity: str | Unset = UNSET, owner: str | Unset = UNSET,
        aware_at: datetime | str | Unset | None = UNSET, serious_harm: str | Unset = UNSET,
        ai_act_reported_at: datetime | str | Unset | None = UNSET, dora_class: str | Unset = UNSET,
        classified_at: datetime | str | Unset | None = UNSET,
        dora_initial_at: datetime | str | Unset | None = UNSET,
        dora_intermediate_at: datetime | str | Unset | None = UNSET,
        dora_final_at: datetime | str | Unset | None = UNSET, merged_into: str | Unset = UNSET,
        note: str | Unset = UNSET, attachment: Mapping[str, Any] | Unset = UNSET
    ) -> results.IncidentDetail:
        """State what is known of an incident."""

    @operation("GET", "/v1/incidents/{incident_id}/export")
    def export(self, incident_id: str) -> results.IncidentExport:
        """Export the whole record of an incident."""


class Messages(Group[S]):
    @operation("POST", "/v1/agents/{agent_id}/sign")
    def sign(
        self, agent_id: str, payload: Any, *, format_: str | None = None, audience: str | None = None
    ) -> results.Signature:
        """Sign a payload with an agent's managed key."""

    @operation("POST", "/v1/verify/message", repeatable=True)
    def verify(
        self, payload: Any, *, signature: str | None = None, certificate_serial: str | None = None,
        jws: str | None = None, audience: str | None = None, verifier_agent_id: str | None = None
    ) -> results.MessageVerification:
        """Verify a message that an agent signed."""


class OAuth(Group[S]):
    @operation("GET", "/.well-known/oauth-authorization-server", bare=True)
    def metadata(self) -> results.Metadata:
        """What this authorization server offers."""

    @operation("POST", "/oauth/introspect", bare=True, body=FORM, repeatable=True)
    def introspect(self, token: str, *, token_type_hint: str | None = None) -> results.Introspection:
        """Whether a token stands now (RFC 7662)."""

    @operation("POST", "/oauth/revoke", body=FORM, repeatable=True)
    def revoke(self, token: str, *, token_type_hint: str | None = None) -> None:
        """Revoke a token and all that came of it (RFC 7009)."""

    @operation("POST", "/oauth/token", bare=True, body=FORM)
    def exchange(
        self, grant_type: str = "urn:ietf:params:oauth:grant-type:token-exchange", *,
        subject_token: str | None = None, subject_token_type: str | None = None,
        actor_token: str | None = None, actor_token_type: str | None = None, scope: str | None = None,
        audience: str | None = None, resource: str | None = None, requested_token_type: str | None = None,
        dpop_jkt: str | None = None, proof: str | Prove | None = None
    ) -> results.TokenResponse:
        """Exchange a token for a delegation to an agent, or issue an agent its own."""


class ReportSchedules(Group[S]):
    @listing("/v1/report-schedules")
    def list(
        self, *, before: datetime | str | None = None, limit: int | None = None
    ) -> results.ReportSchedule:
        """List schedules of reports, newest first."""

    @operation("POST", "/v1/report-schedules")
    def create(self, *, type_: str, cadence: str, idempotency_key: str = "") -> results.ReportSchedule:
        """Have a report made of each month or quarter."""

    @operation("GET", "/v1/report-schedules/{schedule_id}")
    def get(self, schedule_id: str) -> results.ReportSchedule:
        """Fetch a schedule of reports."""

    @operation("PATCH", "/v1/report-schedules/{schedule_id}")
    def update(self, schedule_id: str, *, cadence: str | Unset = UNSET) -> results.ReportSchedule:
        """Change how often a schedule reports."""

    @operation("DELETE", "/v1/report-schedules/{schedule_id}", repeatable=True)
    def delete(self, schedule_id: str) -> None:
        """End a schedule of reports."""


class Owners(Group[S]):
    @operation("POST", "/v1/owners/replace")
    def replace(self, *, from_: str, to: Mapping[str, Any]) -> results.OwnersReplaced:
        """Put another person in an owner's place."""


class Reports(Group[S]):
    @listing("/v1/reports")
    def list(
        self, *, before: datetime | str | None = None, limit: int | None = None, status: str | None = None,
        type_: str | None = None
    ) -> results.Report:
        """List reports, newest first."""

    @operation("POST", "/v1/reports")
    def request(
        self, *, type_: str, period_start: datetime | str, period_end: datetime | str,
        agent_ids: Sequence[str] | None = None, idempotency_key: str = ""
    ) -> results.Report:
        """Ask for a compliance report."""

    @operation("GET", "/v1/reports/{report_id}")
    def get(self, report_id: str) -> results.Report:
        """Follow a report."""

    @operation("GET", "/v1/reports/{report_id}/bundle", accept="application/zip")
    def bundle(self, report_id: str) -> bytes:
        """Download a report with all that proves it."""

    @operation("GET", "/v1/reports/{report_id}/json")
    def document(self, report_id: str) -> results.ReportDocument:
        """Read a report as JSON."""

    @operation("GET", "/v1/reports/{report_id}/manifest")
    def manifest(self, report_id: str) -> results.ReportManifest:
        """Read a report's signed manifest."""

    @operation("GET", "/v1/reports/{report_id}/pdf", accept="application/pdf")
    def pdf(self, report_id: str) -> bytes:
        """Read a report as PDF."""

    @operation("GET", "/v1/reports/schema", accept="application/schema+json", bare=True)
    def schema(self) -> Mapping[str, Any]:
        """Read the JSON Schema of reports."""


class Signals(Group[S]):
    @operation("GET", "/.well-known/ssf-configuration", bare=True)
    def configuration(self, *, environment: str | None = None) -> results.Transmitter:
        """Configuration of the signals' transmitter."""

    @operation("POST", "/v1/ssf/streams", bare=True)
    def create(
        self, *, delivery: Mapping[str, Any] | None = None, events_requested: Sequence[str] | None = None,
        description: str | None = None, idempotency_key: str = ""
    ) -> results.SignalStream:
        """Make a stream of signals."""

    @operation("GET", "/v1/ssf/streams", bare=True)
    def streams(self, stream_id: str | None = None) -> tuple[results.SignalStream, ...]:
        """Fetch a stream, or all."""

    @operation("PATCH", "/v1/ssf/streams", bare=True)
    def update(
        self, stream_id: str, *, delivery: Mapping[str, Any] | Unset = UNSET,
        events_requested: Sequence[str] | Unset = UNSET, description: str | Unset = UNSET
    ) -> results.SignalStream:
        """Change a stream."""

    @operation("DELETE", "/v1/ssf/streams", repeatable=True)
    def delete(self, stream_id: str) -> None:
        """Remove a stream."""

    @operation("POST", "/v1/ssf/streams/{stream_id}/poll", bare=True, camel=True, repeatable=True)
    def poll(
        self, stream_id: str, *, max_events: int | None = None, return_immediately: bool | None = None,
        ack: Sequence[str] | None = None, set_errs: Mapping[str, Any] | None = None
    ) -> results.Polled:
        """Take signals by polling."""

    @operation("GET", "/v1/ssf/status", bare=True)
    def status(self, stream_id: str) -> results.SignalStreamStatus:
        """A stream's status."""

    @operation("POST", "/v1/ssf/status", bare=True)
    def set_status(
        self, stream_id: str, *, status: str, reason: str | None = None
    ) -> results.SignalStreamStatus:
        """Enable, pause or disable a stream."""

    @operation("POST", "/v1/ssf/verify")
    def verify(self, stream_id: str, *, state: str | None = None) -> None:
        """Ask for a verification event."""


class Stops(Group[S]):
    @listing("/v1/stops")
    def list(self, *, before: datetime | str | None = None, limit: int | None = None) -> results.Stop:
        """List stops, newest first."""

    @operation("POST", "/v1/stops")
    def begin(
        self, *, match: Mapping[str, Any], reason: str, reason_code: str | None = None,
        revoke: bool | None = None, dry_run: bool | None = None, idempotency_key: str = ""
    ) -> results.BegunStop:
        """Stop all agents of a kind at once."""

    @operation("GET", "/v1/stops/{stop_id}")
    def get(self, stop_id: str) -> results.Stop:
        """Fetch a stop."""

    @operation("POST", "/v1/stops/{stop_id}/release")
    def release(self, stop_id: str, reason: str) -> results.Stop:
        """Lift the holds of a stop."""

    @operation("GET", "/v1/stops/{stop_id}/receipt")
    def receipt(self, stop_id: str) -> results.HaltReceipt:
        """Fetch the signed receipt of a stop."""


class TrustedIssuers(Group[S]):
    @operation("GET", "/v1/trusted-issuers")
    def list(self) -> tuple[results.TrustedIssuer, ...]:
        """List trusted issuers, newest first."""

    @operation("POST", "/v1/trusted-issuers")
    def create(
        self, *, issuer: str, audiences: Sequence[str], jwks_uri: str | None = None,
        jwks: Mapping[str, Any] | None = None, subject_claim: str | None = None,
        required_claims: Mapping[str, Any] | None = None, max_age_seconds: int | None = None,
        active: bool | None = None, algorithms: Sequence[str] | None = None, idempotency_key: str = ""
    ) -> results.TrustedIssuer:
        """Trust an issuer of ID tokens."""

    @operation("GET", "/v1/trusted-issuers/{issuer_id}")
    def get(self, issuer_id: str) -> results.TrustedIssuer:
        """Fetch a trusted issuer."""

    @operation("PATCH", "/v1/trusted-issuers/{issuer_id}")
    def update(
        self, issuer_id: str, *, jwks_uri: str | Unset | None = UNSET,
        jwks: Mapping[str, Any] | Unset | None = UNSET, subject_claim: str | Unset = UNSET,
        required_claims: Mapping[str, Any] | Unset = UNSET, max_age_seconds: int | Unset = UNSET,
        active: bool | Unset = UNSET, audiences: Sequence[str] | Unset = UNSET,
        algorithms: Sequence[str] | Unset = UNSET
    ) -> results.TrustedIssuer:
        """Edit a trusted issuer."""

    @operation("DELETE", "/v1/trusted-issuers/{issuer_id}", repeatable=True)
    def delete(self, issuer_id: str) -> None:
        """Trust an issuer no more."""


class TracedNames(Group[S]):
    @operation("GET", "/v1/otlp/names")
    def list(self) -> tuple[results.TracedName, ...]:
        """List names in spans, those without an agent first."""

    @operation("POST", "/v1/otlp/names")
    def map(self, *, source: str, name: str, agent_id: str, idempotency_key: str = "") -> results.TracedName:
        """Have a name in spans stand for an agent."""

    @operation("DELETE", "/v1/otlp/names/{name_id}", repeatable=True)
    def delete(self, name_id: str) -> None:
        """Have a name in spans stand for no agent."""


class Webhooks(Group[S]):
    @operation("GET", "/v1/webhooks")
    def list(self) -> tuple[results.Webhook, ...]:
        """List webhooks, newest first."""

    @operation("POST", "/v1/webhooks")
    def create(
        self, *, url: str, events: Sequence[str], description: str | None = None, format_: str | None = None,
        idempotency_key: str = ""
    ) -> results.WebhookWithSecret:
        """Register a webhook."""

    @operation("GET", "/v1/webhooks/{webhook_id}")
    def get(self, webhook_id: str) -> results.Webhook:
        """Fetch a webhook."""

    @operation("PATCH", "/v1/webhooks/{webhook_id}")
    def update(
        self, webhook_id: str, *, description: str | Unset | None = UNSET, format_: str | Unset = UNSET,
        url: str | Unset = UNSET, events: Sequence[str] | Unset = UNSET, active: bool | Unset = UNSET
    ) -> results.Webhook:
        """Edit a webhook."""

    @operation("DELETE", "/v1/webhooks/{webhook_id}", repeatable=True)
    def delete(self, webhook_id: str) -> None:
        """Delete a webhook."""

    @listing("/v1/webhooks/{webhook_id}/deliveries")
    def deliveries(
        self, webhook_id: str, *, before: datetime | str | None = None, event: str | None = None,
        limit: int | None = None, status: str | None = None
    ) -> results.Delivery:
        """A webhook's delivery history, newest first."""

    @operation("POST", "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver")
    def redeliver(self, webhook_id: str, delivery_id: str, *, idempotency_key: str = "") -> results.Delivery:
        """Send a past delivery's event again."""

    @operation("POST", "/v1/webhooks/{webhook_id}/recover")
    def recover(
        self, webhook_id: str, since: datetime | str, *, idempotency_key: str = ""
    ) -> results.Recovered:
        """Send everything again that has failed since a time."""

    @operation("POST", "/v1/webhooks/{webhook_id}/rotate-secret")
    def rotate_secret(
        self, webhook_id: str, *, overlap_seconds: int | None = None, idempotency_key: str = ""
    ) -> results.WebhookWithSecret:
        """Give a webhook a new secret."""

    @operation("POST", "/v1/webhooks/{webhook_id}/test")
    def test(self, webhook_id: str, *, idempotency_key: str = "") -> results.Delivery:
        """Send a test event."""


class Operations(Generic[S]):
    """All operations, over one transport."""

    def __init__(self, transport: S) -> None:
        self.transport: S = transport
        self.agents: Agents[S] = Agents(transport)
        self.approval_policies: ApprovalPolicies[S] = ApprovalPolicies(transport)
        self.approvals: Approvals[S] = Approvals(transport)
        self.audit_log: AuditLog[S] = AuditLog(transport)
        self.access_reviews: AccessReviews[S] = AccessReviews(transport)
        self.agent_keys: AgentKeys[S] = AgentKeys(transport)
        self.authorities: Authorities[S] = Authorities(transport)
        self.blueprints: Blueprints[S] = Blueprints(transport)
        self.certificates: Certificates[S] = Certificates(transport)
        self.decisions: Decisions[S] = Decisions(transport)
        self.delegation: Delegation[S] = Delegation(transport)
        self.events: Events[S] = Events(transport)
        self.gateway_routes: GatewayRoutes[S] = GatewayRoutes(transport)
        self.incidents: Incidents[S] = Incidents(transport)
        self.messages: Messages[S] = Messages(transport)
        self.oauth: OAuth[S] = OAuth(transport)
        self.report_schedules: ReportSchedules[S] = ReportSchedules(transport)
        self.owners: Owners[S] = Owners(transport)
        self.reports: Reports[S] = Reports(transport)
        self.signals: Signals[S] = Signals(transport)
        self.stops: Stops[S] = Stops(transport)
        self.trusted_issuers: TrustedIssuers[S] = TrustedIssuers(transport)
        self.traced_names: TracedNames[S] = TracedNames(transport)
        self.webhooks: Webhooks[S] = Webhooks(transport)
