"""The controls of the EU AI Act."""

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

SIX_MONTHS = timedelta(days=183)
# Article 73(2), (4) and (3): days from awareness to report.
REPORTING_CLOCKS = {
    "in general": 15,
    "on a death": 10,
    "on a widespread infringement or harm to critical infrastructure": 2,
}


def controls(frame: Frame, facts: Facts) -> list[Control]:
    """Return every control of the report, in the order of the articles."""
    return [
        logging_of_risks(facts),
        logging_for_monitoring(facts),
        logging_of_operation(facts),
        identity_and_limits(facts),
        oversight(facts),
        retention(frame, facts),
        monitoring(facts),
        trends(facts),
        incidents(facts),
    ]


def logging_of_risks(facts: Facts) -> Control:
    found = Findings("aia-12-2-a")
    events, high = facts.event_count, facts.high_risk_count
    found.shows_number(Rows.EVENTS, events, "event", f"received and scored, {high:,} high-risk")
    found.shows_number(
        Rows.AGENT_CHANGES, facts.audited("agent.updated"), "change", "of agents' profiles audited"
    )
    found.lacks(no_event(facts), when=events == 0)
    missing_events(found, facts)
    missing_entries(found, facts)
    return found.control()


def logging_for_monitoring(facts: Facts) -> Control:
    found = Findings("aia-12-2-b")
    steps = counted(len(facts.trend), facts.trend_span)
    found.shows(Rows.EVENTS, facts.event_count, f"Events by risk band over {steps} are part of this report")
    shared.verdicts(found, facts)
    found.lacks(no_event(facts), when=facts.event_count == 0)
    missing_events(found, facts)
    return found.control()


def logging_of_operation(facts: Facts) -> Control:
    found = Findings("aia-12-2-c")
    kinds = counted(len(facts.events_by_action), "kind")
    found.shows(Rows.EVENTS, facts.event_count, f"Events of {kinds} of action, with time and agent")
    found.lacks_number(facts.silent_agents, "active agent", "without an event stored of the period")
    found.lacks(no_event(facts), when=facts.event_count == 0)
    missing_events(found, facts)
    return found.control()


def identity_and_limits(facts: Facts) -> Control:
    found = Findings("aia-13")
    found.shows_number(Rows.AGENTS, facts.agent_count, "agent", "registered with a model hash")
    found.shows_number(
        Rows.CERTIFICATES,
        facts.certificate_count,
        "certificate",
        "in force at some time in the period, binding version and scope to a key",
    )
    nameless, scopeless = facts.agents_without_model_or_version, facts.agents_without_scope
    found.lacks_number(nameless, "agent", "without a model name or version")
    found.lacks_number(scopeless, "agent", "without declared permitted actions")
    bare = facts.uncertified_active_agents
    found.lacks_number(bare, "active agent", "without an active certificate when this report was generated")
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    return found.control()


def oversight(facts: Facts) -> Control:
    found = Findings("aia-14")
    people, stopped = facts.human_interventions, facts.suspension_count + facts.revocation_count
    found.shows_number(
        Rows.INTERVENTIONS, people, "intervention", "by people in the console, reviews of events among them"
    )
    found.shows_number(Rows.SUSPENSIONS, facts.suspension_count, "suspension", "audited, with who and when")
    found.shows_number(
        Rows.REVOCATIONS, facts.revocation_count, "certificate", "revoked or put on hold, with when and why"
    )
    shared.stops(found, facts)
    shared.verdicts(found, facts)
    mode_gaps(found, facts)
    found.lacks_number(facts.verdicts_by_keys, "verdict", "by API keys, not by people in the console")
    found.lacks(
        "No act of a person is on record: agents were stopped by the service or by API keys",
        when=people == 0 and stopped > 0,
    )
    found.lacks(
        "Nothing was stopped in the period: that people can stop an agent is not shown by its records",
        when=stopped == 0,
    )
    missing_entries(found, facts)
    found.lacks("Who is assigned to oversee, and their competence (Article 26(2)), is not recorded here")
    return found.control()


def retention(frame: Frame, facts: Facts) -> Control:
    return shared.retention(Findings("aia-19-26-6"), frame, facts, least=SIX_MONTHS, words="six months")


def monitoring(facts: Facts) -> Control:
    found = Findings("aia-26-5")
    shared.verdicts(found, facts)
    shared.stops(found, facts)
    mode_gaps(found, facts)
    found.lacks("No high-risk event is stored of the period", when=facts.high_risk_count == 0)
    missing_events(found, facts)
    missing_entries(found, facts)
    found.lacks("Whether provider and authority were informed of a risk is not recorded here")
    return found.control()


def trends(facts: Facts) -> Control:
    found = Findings("aia-72")
    steps = counted(len(facts.trend), facts.trend_span)
    found.shows(
        Rows.EVENTS, facts.event_count, f"{steps} of events by risk band; a risk score for each agent"
    )
    shared.verdicts(found, facts)
    shared.stops(found, facts)
    found.lacks("No trend can be drawn without events", when=facts.event_count == 0)
    missing_events(found, facts)
    found.lacks("The provider's post-market monitoring plan (Article 72(3)) is not recorded here")
    return found.control()


def incidents(facts: Facts) -> Control:
    found = Findings("aia-73")
    rest = "to be assessed as possible serious incidents"
    found.shows_number(Rows.HIGH_RISK, facts.high_risk_count, "high-risk event", rest)
    found.shows_number(Rows.REVOCATIONS, facts.revocation_count, "revocation", rest)
    clocks = ", ".join(f"{days} days {when}" for when, days in REPORTING_CLOCKS.items())
    found.lacks(
        f"Whether any is a serious incident is for people to judge; the clocks from awareness: {clocks}"
    )
    missing_events(found, facts)
    return found.control(asks_operator=True)
