"""The rows that the claims of a report rest on: what each set holds, in words that a reader can repeat.

A claim is evidence only if it names one of these sets and the set has rows; the count stands in the report.
"""

from enum import StrEnum


class Rows(StrEnum):
    """A set of the service's rows; of the report's tenant, agents and period unless it says otherwise."""

    EVENTS = "events"
    TRANSACTIONS = "transactions"
    HIGH_RISK = "high_risk_events"
    REVIEWED = "reviewed_high_risk_events"
    INTERVENTIONS = "interventions"
    APPROVALS = "approvals"
    APPROVED_ACTS = "approved_acts"
    STOPS = "stops"
    SUSPENSIONS = "suspensions"
    REVOCATIONS = "revocations"
    HOLDS = "holds"
    RELEASES = "releases"
    INCIDENTS = "incidents"
    EXPORTS = "exports"
    CERTIFICATES = "certificates"
    AGENTS = "agents"
    OWNED = "agents_with_an_owner"
    ACCESS_REVIEWS = "access_reviews"
    ACCESS_DECISIONS = "access_decisions"
    AGENT_CHANGES = "agent_changes"
    MODE_CHANGES = "mode_changes"
    DELEGATIONS = "delegations"
    VERIFIED_DELEGATIONS = "verified_delegations"
    AUDIT_ENTRIES = "audit_entries"
    SEALED_ENTRIES = "sealed_entries"
    OLDEST = "oldest_records"
    ARCHIVES = "archives"


DEFINITIONS = {
    Rows.EVENTS: "Behavioural events received in the period",
    Rows.TRANSACTIONS: "Of these events, transaction_initiated and transaction_anomaly",
    Rows.HIGH_RISK: "Of these events, those of the band high",
    Rows.REVIEWED: "Of the high-risk events, those reviewed, by people or API keys; the last verdict counts",
    Rows.INTERVENTIONS: (
        "Audit entries of people at the console (not of API keys): suspending, reinstating or retiring an "
        "agent, revoking a certificate, reviewing an event"
    ),
    Rows.APPROVALS: "Audit entries approval.decided: acts approved or denied before they were done",
    Rows.APPROVED_ACTS: "Audit entries approval.used: uses of receipts, each of which is good once",
    Rows.STOPS: "Audit entries agent.high_risk: automatic stops",
    Rows.SUSPENSIONS: "Audit entries agent.suspended",
    Rows.REVOCATIONS: "Audit entries certificate.revoked: revocations for good",
    Rows.HOLDS: "Audit entries certificate.held: holds put on the certificates of suspended agents",
    Rows.RELEASES: "Audit entries certificate.released: holds lifted",
    Rows.INCIDENTS: "Incidents opened in the period, those merged since included",
    Rows.EXPORTS: "Audit entries audit.exported: from the console; those over the API leave no entry",
    Rows.CERTIFICATES: "Certificates in force at some time in the period",
    Rows.AGENTS: "Agents registered before the end of the period and not retired before its start",
    Rows.OWNED: "Of the agents, those with an owner when the report was generated",
    Rows.ACCESS_REVIEWS: "Audit entries access_review.done: reviews that ended, with a signed record",
    Rows.ACCESS_DECISIONS: "Audit entries access_review.decided: one for each agent decided on",
    Rows.AGENT_CHANGES: "Audit entries agent.updated",
    Rows.MODE_CHANGES: "Audit entries tenant.enforcement_changed and agent.enforcement_changed",
    Rows.DELEGATIONS: "Audit entries delegation.issued",
    Rows.VERIFIED_DELEGATIONS: (
        "Of the delegations, those whose root is a person whom an ID token of a trusted issuer proved"
    ),
    Rows.AUDIT_ENTRIES: "Audit entries made in the period",
    Rows.SEALED_ENTRIES: (
        "Of the audit entries, those under the newest signed checkpoint whose hash, made anew, is their leaf"
    ),
    Rows.OLDEST: "The oldest event and the oldest audit entry of the tenant that are stored",
    Rows.ARCHIVES: "Spans of receipt, up to the end of the period, whose events were archived or dropped",
}

LISTS = {
    Rows.AGENTS: "evidence/agents.jsonl",
    Rows.CERTIFICATES: "evidence/certificates.jsonl",
    Rows.HIGH_RISK: "evidence/high_risk_events.jsonl",
    Rows.INTERVENTIONS: "evidence/interventions.jsonl",
    Rows.STOPS: "evidence/stops.jsonl",
}
"""The sets that the report's bundle lists row by row, and their files."""
