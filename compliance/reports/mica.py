"""MiCA's controls: records that can be reconstituted, attributed, kept and not altered."""

from datetime import timedelta

from compliance.reports.controls import Control, Findings, counted, spoken
from compliance.reports.facts import Facts, Frame

FIVE_YEARS = timedelta(days=5 * 365 + 2)
MAX_VALIDITY = timedelta(days=365)


def controls(frame: Frame, facts: Facts) -> list[Control]:
    """Every control of the report."""
    return [
        reconstitution(facts),
        amendments(facts),
        inalterability(facts),
        attribution(facts),
        retention(frame, facts),
        validity(facts),
    ]


def reconstitution(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-2-a")
    entries = sum(facts.audit_by_type.values())
    found.shows(
        f"{counted(entries, 'audit entry', 'audit entries')} in the order of their making", when=entries > 0
    )
    found.shows(
        f"{counted(facts.transaction_count, 'transaction event')} with agent, time, details and risk",
        when=facts.transaction_count > 0,
    )
    loose = facts.unlinked_transactions
    found.lacks(f"{counted(loose, 'transaction event')} named no chain and no session", when=loose > 0)
    found.lacks("Orders and executions themselves are kept by the trading systems, not here")
    return found.control()


def amendments(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-2-b")
    changes = facts.audit_by_type.get("agent.updated", 0)
    found.shows(
        f"{counted(changes, 'change')} of agents' profiles audited with the fields changed", when=changes > 0
    )
    found.shows("Every change of state writes an audit entry in the same transaction")
    found.lacks("Entries name the fields changed, not their former values", when=changes > 0)
    return found.control()


def inalterability(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-2-c")
    found.shows(
        "The database's triggers against changing, deleting and truncating audit entries are in force",
        when=facts.is_log_guarded,
    )
    found.lacks("A trigger that guards the audit log is missing or disabled", when=not facts.is_log_guarded)
    found.lacks("Who may administer the database, and so remove the guard, is for the operator to show")
    return found.control()


def attribution(facts: Facts) -> Control:
    found = Findings("mica-2025-1140-10")
    found.shows(
        f"{counted(facts.agent_count, 'agent')} identified by model hash; every event names its agent",
        when=facts.agent_count > 0,
    )
    tokens = facts.delegations
    found.shows(
        f"{counted(tokens.total, 'delegation')} audited with the whole chain, "
        f"{tokens.rooted_in_a_human:,} of them from a person",
        when=tokens.total > 0,
    )
    rootless, unchecked = (
        tokens.total - tokens.rooted_in_a_human,
        tokens.total - tokens.checked_against_a_scope,
    )
    found.lacks(f"{counted(rootless, 'delegation')} naming no person at the root", when=rootless > 0)
    found.lacks(f"{counted(unchecked, 'delegation')} by agents that declare no scope", when=unchecked > 0)
    found.lacks("Transactions were recorded, but no delegation tells for whom", when=_is_unattributed(facts))
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    return found.control()


def retention(frame: Frame, facts: Facts) -> Control:
    found = Findings("mica-68-9")
    oldest = min(filter(None, (facts.oldest_event_at, facts.oldest_entry_at)), default=None)
    if oldest is None:
        found.lacks("There are no records")
        return found.control()
    age = frame.generated_at - oldest
    found.shows(
        f"The oldest record kept is {spoken(age)} old; the service deletes no event and no audit entry"
    )
    found.lacks("The records do not reach back five years yet", when=age < FIVE_YEARS)
    found.lacks("That backups are kept for five years is for the operator to show")
    return found.control()


def validity(facts: Facts) -> Control:
    found = Findings("policy-certificate-validity")
    longer = facts.overlong_certificates
    found.shows(
        f"{counted(facts.certificate_count - longer, 'certificate')} valid up to {MAX_VALIDITY.days} days",
        when=facts.certificate_count > longer,
    )
    found.lacks(f"{counted(longer, 'certificate')} valid for longer", when=longer > 0)
    found.lacks("No certificate was in force in the period", when=facts.certificate_count == 0)
    return found.control()


def _is_unattributed(facts: Facts) -> bool:
    return facts.transaction_count > 0 and facts.delegations.total == 0
