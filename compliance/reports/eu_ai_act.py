"""The EU AI Act's controls: what the service recorded, article by article."""

from datetime import timedelta

from compliance.reports.controls import Control, Findings, counted, spoken
from compliance.reports.facts import Facts, Frame

SIX_MONTHS = timedelta(days=183)
# Article 73(2), (4) and (3): days from awareness to report.
REPORTING_CLOCKS = {"in general": 15, "on a death": 10, "on a widespread infringement": 2}


def controls(frame: Frame, facts: Facts) -> list[Control]:
    """Every control of the report, in the order of the articles."""
    return [
        logging_of_risks(facts),
        logging_for_monitoring(facts),
        logging_of_operation(facts),
        identity_and_limits(facts),
        oversight(facts),
        retention(frame, facts),
        trends(facts),
        incidents(facts),
    ]


def logging_of_risks(facts: Facts) -> Control:
    found = Findings("aia-12-2-a")
    found.shows(
        f"{counted(facts.event_count, 'event')} received and scored, {facts.high_risk_count:,} high-risk",
        when=facts.event_count > 0,
    )
    changes = facts.audit_by_type.get("agent.updated", 0)
    found.shows(f"{counted(changes, 'change')} of agents' profiles audited", when=changes > 0)
    found.lacks("No event was received in the period", when=facts.event_count == 0)
    return found.control()


def logging_for_monitoring(facts: Facts) -> Control:
    found = Findings("aia-12-2-b")
    found.shows(
        f"Events by risk band over {counted(len(facts.trend), facts.trend_span)} are part of this report",
        when=bool(facts.trend),
    )
    found.lacks("There are no events to monitor by", when=not facts.trend)
    return found.control()


def logging_of_operation(facts: Facts) -> Control:
    found = Findings("aia-12-2-c")
    kinds = len(facts.events_by_action)
    found.shows(f"Events of {counted(kinds, 'kind')} of action, with time and agent", when=kinds > 0)
    silent = sum(1 for agent in facts.agents if agent.status == "active" and agent.event_count == 0)
    found.lacks(f"{counted(silent, 'active agent')} sent no event in the period", when=silent > 0)
    found.lacks("No event was received in the period", when=kinds == 0)
    return found.control()


def identity_and_limits(facts: Facts) -> Control:
    found = Findings("aia-13")
    found.shows(
        f"{counted(facts.agent_count, 'agent')} registered with a model hash", when=facts.agent_count > 0
    )
    found.shows(
        f"{counted(facts.certificate_count, 'certificate')} in force, binding version and scope to a key",
        when=facts.certificate_count > 0,
    )
    nameless, scopeless = facts.agents_without_model_or_version, facts.agents_without_scope
    found.lacks(f"{counted(nameless, 'agent')} without a model name or version", when=nameless > 0)
    found.lacks(f"{counted(scopeless, 'agent')} without declared permitted actions", when=scopeless > 0)
    bare = facts.uncertified_active_agents
    found.lacks(f"{counted(bare, 'active agent')} without an active certificate", when=bare > 0)
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    return found.control()


def oversight(facts: Facts) -> Control:
    found = Findings("aia-14")
    stops = facts.audit_by_type.get("agent.suspended", 0)
    found.shows(f"{counted(stops, 'suspension')} of agents audited, with who and when", when=stops > 0)
    found.shows(
        f"{counted(facts.revocation_count, 'certificate')} revoked, with who, when and why",
        when=facts.revocation_count > 0,
    )
    people = facts.human_interventions
    found.shows(f"{counted(people, 'intervention')} by people or their API keys", when=people > 0)
    delays = [certificate.delay for certificate in facts.certificates if certificate.delay is not None]
    if delays:
        found.shows(f"Slowest revocation after a high-risk event: {spoken(max(delays))}")
    found.lacks(
        "Agents were stopped by the service alone; no act of a person is on record",
        when=people == 0 and stops + facts.revocation_count > 0,
    )
    found.lacks(
        "Nothing was stopped in the period: that people can intervene is not shown by its records",
        when=stops + facts.revocation_count == 0,
    )
    found.lacks("Who is assigned to oversee, and their competence (Article 26(2)), is not recorded here")
    return found.control()


def retention(frame: Frame, facts: Facts) -> Control:
    found = Findings("aia-19-26-6")
    oldest = min(filter(None, (facts.oldest_event_at, facts.oldest_entry_at)), default=None)
    if oldest is None:
        found.lacks("There are no logs")
        return found.control()
    age = frame.generated_at - oldest
    found.shows(
        f"The oldest record kept is {spoken(age)} old; the service deletes no event and no audit entry"
    )
    found.lacks("The records do not reach back six months yet", when=age < SIX_MONTHS)
    return found.control()


def trends(facts: Facts) -> Control:
    found = Findings("aia-72")
    found.shows(
        f"{counted(len(facts.trend), facts.trend_span)} of events by risk band; a risk score for each agent",
        when=bool(facts.trend),
    )
    found.lacks("No trend can be drawn without events", when=not facts.trend)
    found.lacks("The provider's post-market monitoring plan (Article 72(3)) is not recorded here")
    return found.control()


def incidents(facts: Facts) -> Control:
    found = Findings("aia-73")
    found.shows(
        f"{counted(facts.high_risk_count, 'high-risk event')} and "
        f"{counted(facts.revocation_count, 'revocation')} to be assessed as possible serious incidents"
    )
    clocks = ", ".join(f"{days} days {when}" for when, days in REPORTING_CLOCKS.items())
    found.lacks(
        f"Whether any is a serious incident is for people to judge; the clocks from awareness: {clocks}"
    )
    return found.control(asks_operator=True)
