"""The controls of the EU AI Act."""

from datetime import timedelta

from compliance.reports.content import controls as shared
from compliance.reports.content.controls import (
    Control,
    Findings,
    counted,
    missing_events,
    mode_gaps,
    no_event,
    spoken,
)
from compliance.reports.content.facts import Facts, Frame

SIX_MONTHS = timedelta(days=183)
# Article 73(2), (4) and (3): days from awareness to report.
REPORTING_CLOCKS = {"in general": 15, "on a death": 10, "on a widespread infringement": 2}


def controls(frame: Frame, facts: Facts) -> list[Control]:
    """Return every control of the report, in the order of the articles."""
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
    found.shows_number(
        facts.event_count, "event", f"received and scored, {facts.high_risk_count:,} high-risk"
    )
    changes = facts.audit_by_type.get("agent.updated", 0)
    found.shows_number(changes, "change", "of agents' profiles audited")
    found.lacks(no_event(facts), when=facts.event_count == 0)
    missing_events(found, facts)
    return found.control()


def logging_for_monitoring(facts: Facts) -> Control:
    found = Findings("aia-12-2-b")
    found.shows(
        f"Events by risk band over {counted(len(facts.trend), facts.trend_span)} are part of this report",
        when=bool(facts.trend),
    )
    found.lacks("There are no events to monitor by", when=not facts.trend)
    missing_events(found, facts)
    return found.control()


def logging_of_operation(facts: Facts) -> Control:
    found = Findings("aia-12-2-c")
    kinds = len(facts.events_by_action)
    found.shows(f"Events of {counted(kinds, 'kind')} of action, with time and agent", when=kinds > 0)
    active = [agent for agent in facts.agents if agent["status"] == "active"]
    silent = sum(not any(agent["events_by_band"].values()) for agent in active)
    found.lacks_number(silent, "active agent", "without an event stored of the period")
    found.lacks(no_event(facts), when=kinds == 0)
    missing_events(found, facts)
    return found.control()


def identity_and_limits(facts: Facts) -> Control:
    found = Findings("aia-13")
    found.shows_number(facts.agent_count, "agent", "registered with a model hash")
    found.shows_number(facts.certificate_count, "certificate", "in force, binding version and scope to a key")
    nameless, scopeless = facts.agents_without_model_or_version, facts.agents_without_scope
    found.lacks_number(nameless, "agent", "without a model name or version")
    found.lacks_number(scopeless, "agent", "without declared permitted actions")
    bare = facts.uncertified_active_agents
    found.lacks_number(bare, "active agent", "without an active certificate")
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    return found.control()


def oversight(facts: Facts) -> Control:
    found = Findings("aia-14")
    stops = facts.audit_by_type.get("agent.suspended", 0)
    found.shows_number(stops, "suspension", "of agents audited, with who and when")
    mode_gaps(found, facts)
    found.shows_number(facts.revocation_count, "certificate", "revoked, with who, when and why")
    people = facts.human_interventions
    found.shows_number(people, "intervention", "by people in the console, reviews of events among them")
    delays = (certificate["seconds_from_high_risk_event"] for certificate in facts.certificates)
    slowest = max((delay for delay in delays if delay is not None), default=None)
    if slowest is not None:
        found.shows(f"Slowest revocation after a high-risk event: {spoken(timedelta(seconds=slowest))}")
    found.lacks(
        "No act of a person is on record: agents were stopped by the service or by API keys",
        when=people == 0 and stops + facts.revocation_count > 0,
    )
    found.lacks(
        "Nothing was stopped in the period: that people can intervene is not shown by its records",
        when=stops + facts.revocation_count == 0,
    )
    found.lacks("Who is assigned to oversee, and their competence (Article 26(2)), is not recorded here")
    return found.control()


def retention(frame: Frame, facts: Facts) -> Control:
    return shared.retention(Findings("aia-19-26-6"), frame, facts, least=SIX_MONTHS, words="six months")


def trends(facts: Facts) -> Control:
    found = Findings("aia-72")
    found.shows(
        f"{counted(len(facts.trend), facts.trend_span)} of events by risk band; a risk score for each agent",
        when=bool(facts.trend),
    )
    found.lacks("No trend can be drawn without events", when=not facts.trend)
    missing_events(found, facts)
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
