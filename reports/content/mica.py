"""The controls of MiCA, with those of DORA, which binds crypto-asset service providers too."""

from collections.abc import Callable
from datetime import timedelta

from compliance.core.wording import counted
from reports.content.controls import Control, whose
from reports.content.sources import Rows

FIVE_YEARS = timedelta(days=5 * 365 + 2)
SEVEN_YEARS = timedelta(days=7 * 365 + 2)
MAX_VALIDITY = timedelta(days=365)


def reconstitution(found: Control) -> None:
    facts = found.facts
    made = f"{_entries(facts.entry_count)} in the order of their making: {whose(facts.actors())}"
    found.shows(Rows.AUDIT_ENTRIES, facts.entry_count, made)
    rest = "with agent, time, details and risk"
    found.shows_number(Rows.TRANSACTIONS, facts.transaction_count, "transaction event", rest)
    found.lacks_number(facts.unlinked_transactions, "transaction event", "named no chain and no session")
    found.lacks_events()
    found.lacks_entries()
    found.erasures()
    found.lacks("Orders and executions themselves are kept by the trading systems, not here")
    found.lacks("That competent authorities can access the records readily is for the operator to show")


def amendments(found: Control) -> None:
    rest = "of agents' profiles audited with the fields changed"
    found.shows_acts(Rows.AGENT_CHANGES, "change", rest, "agent.updated")
    changed = ("tenant.enforcement_changed", "agent.enforcement_changed")
    found.shows_acts(Rows.MODE_CHANGES, "change", "of modes audited with what stood before", *changed)
    found.asserted.append("Every change of state writes an audit entry in the same transaction")
    text = "Entries name the fields changed, not their former values"
    found.lacks(text, when=found.facts.audited("agent.updated") > 0)
    found.lacks_entries()
    found.erasures()


def inalterability(found: Control) -> None:
    """Of a log that was tampered with nothing is evidence, and no guard of it is asserted."""
    facts = found.facts
    size, sealed, total = facts.checkpoint_size, facts.comparison.as_sealed, facts.entry_count
    is_missing_some = facts.comparison.changed + facts.places_without_entry > 0
    if facts.comparison.is_rooted and not is_missing_some:
        found.shows(
            Rows.SEALED_ENTRIES,
            sealed,
            f"{sealed:,} of {_entries(total)} hashed anew: their hashes lead to the root of the signed"
            f" checkpoint of {size:,} entries, {facts.checkpoint_root}",
        )
        triggers = "The database's triggers against changing, deleting and truncating entries are in force"
        cosigned = (
            f"Witnesses of the operator's policy cosigned the tree up to {facts.witnessed_size:,} entries"
        )
        found.asserted += filter(
            None,
            (
                facts.whole_log,
                triggers if facts.is_log_guarded else "",
                cosigned if facts.witnessed_size > 0 else "",
            ),
        )
    found.lacks("A trigger that guards the audit log is missing or disabled", when=not facts.is_log_guarded)
    unsealed = total - sealed - facts.comparison.changed
    found.lacks_number(unsealed, "audit entry", "not yet under a signed checkpoint", many="audit entries")
    found.lacks(
        "No witness has cosigned the audit log: who administers both database and keys could write it anew",
        when=facts.witnessed_size == 0,
    )
    found.lacks("No verification of the whole log is on record (audit_verify)", when=not facts.whole_log)
    found.lacks_entries()
    found.erasures()
    found.lacks("Who may administer the database is for the operator to show")


def exploitation(found: Control) -> None:
    rest = "of audit entries from the console in the period"
    found.shows_acts(Rows.EXPORTS, "export", rest, "audit.exported")
    found.asserted.append(
        "Audit entries are exported as JSON Lines and CSV; this report lists its rows as JSON Lines"
    )
    text = "No export from the console is on record in the period"
    found.lacks(text, when=found.facts.audited("audit.exported") == 0)
    found.lacks_entries()


def any_technology(found: Control) -> None:
    found.asks_operator = True
    found.lacks(
        "That all arrangements meet the requirements, whatever they run on, is for the operator to show"
    )


def attribution(found: Control) -> None:
    """Without a transaction there is no decision and no execution to attribute."""
    facts = found.facts
    rooted, made = facts.delegations, facts.transaction_count
    total = sum(rooted.values())
    if made == 0:
        found.lacks("No transaction event is stored of the period: there is nothing to attribute")
    else:
        rest = "with the agent that reported it"
        found.shows_number(Rows.TRANSACTIONS, made, "transaction event", rest)
        rest = "audited with the whole chain"
        found.shows_acts(Rows.DELEGATIONS, "delegation", rest, "delegation.issued")
        rest = "rooted in a person whom an ID token of a trusted issuer proved"
        found.shows_number(Rows.VERIFIED_DELEGATIONS, rooted.get("verified", 0), "delegation", rest)
        found.owners()
        found.approvals()
        asserted = counted(rooted.get("asserted", 0), "delegation")
        agents = counted(facts.agent_count, "agent")
        found.asserted += [
            f"{asserted} rooted in a person by the word of the caller alone",
            f"{agents} with the model hash that the caller stated",
        ]
    unchecked = total - facts.delegations_checked_against_a_scope
    found.lacks_number(rooted.get("nobody", 0), "delegation", "naming no person at the root")
    found.lacks_number(unchecked, "delegation", "by agents that declare no scope")
    found.lacks("Transactions were recorded, but no delegation tells for whom", when=made > 0 and total == 0)
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    found.lacks_events()
    found.lacks_entries()


def _entries(number: int) -> str:
    return counted(number, "audit entry", "audit entries")


def retention(found: Control) -> None:
    found.lacks("That backups are kept for five years is for the operator to show")
    kept = min(found.facts.event_retention_days, found.facts.audit_retention_days)
    found.lacks(
        f"Records are kept for less than the seven years that the authority may ask for ({kept:,} days)",
        when=kept < SEVEN_YEARS.days,
    )
    found.lacks("Whether the authority has asked for up to seven years is for the operator to show")
    found.retention(least=FIVE_YEARS, words="five years")


def detection(found: Control) -> None:
    facts = found.facts
    rest = f"received and scored, {facts.high_risk_count:,} high-risk"
    found.shows_number(Rows.EVENTS, facts.event_count, "event", rest)
    found.verdicts()
    found.lacks_any_event()
    found.lacks_events()
    found.lacks("Detection outside of agents' events (networks, systems) is for the operator to show")


def incident_management(found: Control) -> None:
    found.stops()
    found.certificate_acts()
    found.incidents()
    found.interventions()
    found.verdicts()
    found.modes()
    found.lacks_events()
    found.lacks_entries()
    found.lacks(
        "Classification (Article 18), reports (Article 19) and root causes are not part of this report"
    )


def validity(found: Control) -> None:
    total, longer = found.facts.certificate_count, found.facts.overlong_certificates
    rest = f"in force at some time in the period, valid up to {MAX_VALIDITY.days} days"
    found.shows_number(Rows.CERTIFICATES, total - longer, "certificate", rest)
    found.lacks_number(longer, "certificate", "valid for longer")
    found.access_reviews()
    found.lacks("No certificate was in force in the period", when=total == 0)


def automatic_stops(found: Control) -> None:
    facts = found.facts
    found.stops()
    found.modes()
    enforced = facts.agent_count - facts.observed_agents
    if facts.stop_count == 0 and enforced > 0:
        found.asserted.append(
            f"{counted(enforced, 'agent')} would have been stopped over the threshold; no stop was made in "
            "the period"
        )
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    found.lacks_entries()


CONTROLS: dict[str, Callable[[Control], None]] = {
    "mica-2025-1140-2-a": reconstitution,
    "mica-2025-1140-2-b": amendments,
    "mica-2025-1140-2-c": inalterability,
    "mica-2025-1140-2-d": exploitation,
    "mica-2025-1140-2-e": any_technology,
    "mica-2025-1140-8-10": attribution,
    "mica-68-9": retention,
    "dora-10": detection,
    "dora-17": incident_management,
    "policy-certificate-validity": validity,
    "policy-automatic-stops": automatic_stops,
}
"""What is found for each provision."""
