"""The controls of MiCA, with those of DORA, which binds crypto-asset service providers too."""

from datetime import timedelta

from compliance.core.wording import counted
from compliance.reports.content import controls as shared
from compliance.reports.content.controls import (
    Control,
    Findings,
    missing_entries,
    missing_events,
    mode_gaps,
    no_event,
)
from compliance.reports.content.facts import Facts, Frame
from compliance.reports.content.sources import Rows

FIVE_YEARS = timedelta(days=5 * 365 + 2)
MAX_VALIDITY = timedelta(days=365)


def controls(frame: Frame, facts: Facts) -> list[Control]:
    """Return every control of the report."""
    return [
        reconstitution(facts),
        amendments(facts),
        inalterability(facts),
        attribution(facts),
        retention(frame, facts),
        detection(facts),
        incident_management(facts),
        validity(facts),
        automatic_stops(facts),
    ]


def reconstitution(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-2-a")
    entries = facts.entry_count
    made = f"{counted(entries, 'audit entry', 'audit entries')} in the order of their making"
    found.shows(Rows.AUDIT_ENTRIES, entries, made)
    found.shows_number(
        Rows.TRANSACTIONS, facts.transaction_count, "transaction event", "with agent, time, details and risk"
    )
    found.lacks_number(facts.unlinked_transactions, "transaction event", "named no chain and no session")
    missing_events(found, facts)
    missing_entries(found, facts)
    found.lacks("Orders and executions themselves are kept by the trading systems, not here")
    return found.control()


def amendments(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-2-b")
    changes = facts.audited("agent.updated")
    modes = facts.audited("tenant.enforcement_changed") + facts.audited("agent.enforcement_changed")
    found.shows_number(
        Rows.AGENT_CHANGES, changes, "change", "of agents' profiles audited with the fields changed"
    )
    found.shows_number(Rows.MODE_CHANGES, modes, "change", "of modes audited with what stood before")
    found.asserts("Every change of state writes an audit entry in the same transaction")
    found.lacks("Entries name the fields changed, not their former values", when=changes > 0)
    missing_entries(found, facts)
    return found.control()


def inalterability(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-2-c")
    size, sealed, total = facts.checkpoint_size, facts.entries_under_checkpoint, facts.entry_count
    found.shows(
        Rows.SEALED_ENTRIES,
        sealed,
        f"{sealed:,} of {counted(total, 'audit entry', 'audit entries')} are in the Merkle tree of the signed"
        f" checkpoint of {size:,} entries with the root {facts.checkpoint_root}",
    )
    if facts.is_log_guarded:
        found.asserts(
            "The database's triggers against changing, deleting and truncating entries are in force"
        )
    found.lacks("A trigger that guards the audit log is missing or disabled", when=not facts.is_log_guarded)
    unsealed = counted(total - sealed, "audit entry", "audit entries")
    found.lacks(f"{unsealed} not yet under a signed checkpoint", when=total > sealed)
    if facts.witnessed_size > 0:
        found.asserts(
            f"Witnesses of the operator's policy cosigned the tree up to {facts.witnessed_size:,} entries"
        )
    found.lacks(
        "No witness has cosigned the audit log: who administers both database and keys could write it anew",
        when=facts.witnessed_size == 0,
    )
    missing_entries(found, facts)
    found.lacks("Who may administer the database is for the operator to show")
    return found.control()


def attribution(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-8-10")
    agents, total, rooted = facts.agent_count, facts.delegation_count, facts.delegations_rooted_in_a_human
    found.shows_number(Rows.AGENTS, agents, "agent", "identified by model hash; every event names its agent")
    found.shows_number(
        Rows.DELEGATIONS,
        total,
        "delegation",
        f"audited with the whole chain, {rooted:,} of them from a person",
    )
    unchecked = total - facts.delegations_checked_against_a_scope
    found.lacks_number(total - rooted, "delegation", "naming no person at the root")
    found.lacks_number(unchecked, "delegation", "by agents that declare no scope")
    is_unattributed = facts.transaction_count > 0 and total == 0
    found.lacks("Transactions were recorded, but no delegation tells for whom", when=is_unattributed)
    found.lacks("No agent is registered", when=agents == 0)
    missing_events(found, facts)
    missing_entries(found, facts)
    return found.control()


def retention(frame: Frame, facts: Facts) -> Control:
    found = Findings("mica-68-9")
    found.lacks("That backups are kept for five years is for the operator to show")
    return shared.retention(found, frame, facts, least=FIVE_YEARS, words="five years")


def detection(facts: Facts) -> Control:
    found = Findings("dora-10")
    events, high = facts.event_count, facts.high_risk_count
    found.shows_number(Rows.EVENTS, events, "event", f"received and scored, {high:,} high-risk")
    shared.verdicts(found, facts)
    found.lacks(no_event(facts), when=events == 0)
    missing_events(found, facts)
    found.lacks("Detection outside of agents' events (networks, systems) is for the operator to show")
    return found.control()


def incident_management(facts: Facts) -> Control:
    found = Findings("dora-17")
    shared.stops(found, facts)
    found.shows_number(
        Rows.REVOCATIONS, facts.revocation_count, "certificate", "revoked or put on hold, with when and why"
    )
    found.shows_number(
        Rows.INTERVENTIONS,
        facts.human_interventions,
        "intervention",
        "by people in the console, reviews of events among them",
    )
    shared.verdicts(found, facts)
    mode_gaps(found, facts)
    missing_events(found, facts)
    missing_entries(found, facts)
    found.lacks(
        "Classification (Article 18), reports (Article 19) and root causes are not part of this report"
    )
    return found.control()


def validity(facts: Facts) -> Control:
    found = Findings("policy-certificate-validity")
    longer = facts.overlong_certificates
    found.shows_number(
        Rows.CERTIFICATES,
        facts.certificate_count - longer,
        "certificate",
        f"in force at some time in the period, valid up to {MAX_VALIDITY.days} days",
    )
    found.lacks_number(longer, "certificate", "valid for longer")
    found.lacks("No certificate was in force in the period", when=facts.certificate_count == 0)
    return found.control()


def automatic_stops(facts: Facts) -> Control:
    found = Findings("policy-automatic-stops")
    shared.stops(found, facts)
    mode_gaps(found, facts)
    if facts.stop_count == 0 and facts.agent_count > facts.observed_agents:
        enforced = counted(facts.agent_count - facts.observed_agents, "agent")
        found.asserts(
            f"{enforced} would have been stopped over the threshold; no stop was made in the period"
        )
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    missing_entries(found, facts)
    return found.control()
