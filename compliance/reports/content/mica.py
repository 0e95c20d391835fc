"""The controls of MiCA."""

from datetime import timedelta

from compliance.reports.content import controls as shared
from compliance.reports.content.controls import Control, Findings, counted, missing_events, mode_gaps
from compliance.reports.content.facts import Facts, Frame

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
        validity(facts),
        automatic_stops(facts),
    ]


def reconstitution(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-2-a")
    entries = sum(facts.audit_by_type.values())
    found.shows(
        f"{counted(entries, 'audit entry', 'audit entries')} in the order of their making", when=entries > 0
    )
    found.shows_number(facts.transaction_count, "transaction event", "with agent, time, details and risk")
    loose = facts.unlinked_transactions
    found.lacks_number(loose, "transaction event", "named no chain and no session")
    missing_events(found, facts)
    found.lacks("Orders and executions themselves are kept by the trading systems, not here")
    return found.control()


def amendments(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-2-b")
    changes = facts.audit_by_type.get("agent.updated", 0)
    found.shows_number(changes, "change", "of agents' profiles audited with the fields changed")
    found.shows("Every change of state writes an audit entry in the same transaction")
    modes = sum(facts.audit_by_type.get(f"{kind}.enforcement_changed", 0) for kind in ("tenant", "agent"))
    found.shows_number(modes, "change", "of modes audited with what stood before")
    found.lacks("Entries name the fields changed, not their former values", when=changes > 0)
    return found.control()


def inalterability(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-2-c")
    found.shows(
        "The database's triggers against changing, deleting and truncating audit entries are in force",
        when=facts.is_log_guarded,
    )
    found.lacks("A trigger that guards the audit log is missing or disabled", when=not facts.is_log_guarded)
    size, sealed = facts.checkpoint_size, facts.entries_under_checkpoint
    total = sum(facts.audit_by_type.values())
    found.shows(
        f"{sealed:,} of {counted(total, 'audit entry', 'audit entries')} are in the Merkle tree of the signed"
        f" checkpoint of {size:,} entries with the root {facts.checkpoint_root}",
        when=size > 0 and total > 0,
    )
    unsealed = counted(total - sealed, "audit entry", "audit entries")
    found.lacks(f"{unsealed} not yet under a signed checkpoint", when=total > sealed)
    found.shows(
        f"Witnesses of the operator's policy have cosigned the tree up to {facts.witnessed_size:,} entries",
        when=facts.witnessed_size > 0,
    )
    found.lacks(
        "No witness has cosigned the audit log: who administers both database and keys could write it anew",
        when=facts.witnessed_size == 0,
    )
    found.lacks("Who may administer the database is for the operator to show")
    return found.control()


def attribution(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-10")
    found.shows_number(facts.agent_count, "agent", "identified by model hash; every event names its agent")
    total, rooted = facts.delegation_count, facts.delegations_rooted_in_a_human
    found.shows_number(total, "delegation", f"audited with the whole chain, {rooted:,} of them from a person")
    unchecked = total - facts.delegations_checked_against_a_scope
    found.lacks_number(total - rooted, "delegation", "naming no person at the root")
    found.lacks_number(unchecked, "delegation", "by agents that declare no scope")
    is_unattributed = facts.transaction_count > 0 and total == 0
    found.lacks("Transactions were recorded, but no delegation tells for whom", when=is_unattributed)
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    return found.control()


def retention(frame: Frame, facts: Facts) -> Control:
    found = Findings("mica-68-9")
    found.lacks("That backups are kept for five years is for the operator to show")
    return shared.retention(found, frame, facts, least=FIVE_YEARS, words="five years")


def validity(facts: Facts) -> Control:
    found = Findings("policy-certificate-validity")
    longer = facts.overlong_certificates
    found.shows(
        f"{counted(facts.certificate_count - longer, 'certificate')} valid up to {MAX_VALIDITY.days} days",
        when=facts.certificate_count > longer,
    )
    found.lacks_number(longer, "certificate", "valid for longer")
    found.lacks("No certificate was in force in the period", when=facts.certificate_count == 0)
    return found.control()


def automatic_stops(facts: Facts) -> Control:
    found = Findings("policy-automatic-stops")
    enforced = facts.agent_count - facts.observed_agents
    found.shows_number(enforced, "agent", "subject to automatic stops for all of the period")
    stops = facts.audit_by_type.get("agent.high_risk", 0)
    found.shows_number(stops, "automatic stop", "audited, with the event that caused it")
    mode_gaps(found, facts)
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    return found.control()
