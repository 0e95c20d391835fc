"""The controls of the EU AI Act."""

from collections.abc import Callable
from datetime import timedelta

from compliance.core.wording import counted
from incidents.duties.clocks import AI_ACT
from incidents.vocabulary import SeriousHarm
from reports.content.controls import Control
from reports.content.sources import Rows

SIX_MONTHS = timedelta(days=183)
# Article 73(2), (4) and (3).
REPORTING_CLOCKS = {
    "in general": SeriousHarm.UNDECIDED,
    "on a death": SeriousHarm.DEATH,
    "on a widespread infringement": SeriousHarm.WIDESPREAD_INFRINGEMENT,
    "on harm to critical infrastructure": SeriousHarm.CRITICAL_INFRASTRUCTURE,
}


def logging_of_risks(found: Control) -> None:
    facts = found.facts
    rest = f"received and scored, {facts.high_risk_count:,} high-risk"
    found.shows_number(Rows.EVENTS, facts.event_count, "event", rest)
    found.shows_acts(Rows.AGENT_CHANGES, "change", "of agents' profiles audited", "agent.updated")
    found.lacks_any_event()
    found.lacks_events()
    found.lacks_entries()


def logging_for_monitoring(found: Control) -> None:
    steps = counted(len(found.facts.trend), found.facts.trend_span)
    text = f"Events by risk band over {steps} are part of this report"
    found.shows(Rows.EVENTS, found.facts.event_count, text)
    found.verdicts()
    found.lacks_any_event()
    found.lacks_events()


def logging_of_operation(found: Control) -> None:
    kinds = counted(len(found.facts.events_by_action), "kind")
    text = f"Events of {kinds} of action, with time and agent"
    found.shows(Rows.EVENTS, found.facts.event_count, text)
    found.lacks_number(found.facts.silent_agents, "active agent", "without an event stored of the period")
    found.lacks_any_event()
    found.lacks_events()


def identity_and_limits(found: Control) -> None:
    facts = found.facts
    rest = "registered, with a model hash as the caller stated it"
    found.shows_number(Rows.AGENTS, facts.agent_count, "agent", rest)
    rest = "in force at some time in the period, binding version and scope to a key"
    found.shows_number(Rows.CERTIFICATES, facts.certificate_count, "certificate", rest)
    nameless, bare = facts.agents_without_model_or_version, facts.uncertified_active_agents
    found.lacks_number(nameless, "agent", "without a model name or version")
    found.lacks_number(facts.agents_without_scope, "agent", "without declared permitted actions")
    found.lacks_number(bare, "active agent", "without an active certificate when this report was generated")
    found.lacks("No agent is registered", when=facts.agent_count == 0)
    found.lacks("Instructions for use (Article 13(2) and (3)) are the provider's and are not kept here")


def oversight(found: Control) -> None:
    facts = found.facts
    stopped = sum(map(facts.audited, ("agent.suspended", "certificate.held", "certificate.revoked")))
    found.owners()
    found.access_reviews()
    found.interventions()
    found.approvals()
    found.shows_acts(Rows.SUSPENSIONS, "suspension", "audited, with who and when", "agent.suspended")
    found.certificate_acts()
    found.stops()
    found.verdicts()
    found.modes()
    by_keys = facts.verdicts_by.get("api_key", 0)
    found.lacks_number(by_keys, "verdict", "by API keys, not by people in the console")
    found.lacks(
        "No act of a person is on record: agents were stopped by the service or by API keys",
        when=facts.human_interventions == 0 and stopped > 0,
    )
    found.lacks(
        "Nothing was stopped in the period: that people can stop an agent is not shown by its records",
        when=stopped == 0,
    )
    found.lacks_entries()
    found.lacks("Who is assigned to oversee, and their competence (Article 26(2)), is not recorded here")


def monitoring(found: Control) -> None:
    found.verdicts()
    found.stops()
    found.modes()
    found.lacks("No high-risk event is stored of the period", when=found.facts.high_risk_count == 0)
    found.lacks_events()
    found.lacks_entries()
    found.lacks("Whether provider and authority were informed of a risk is not recorded here")


def trends(found: Control) -> None:
    events, steps = found.facts.event_count, counted(len(found.facts.trend), found.facts.trend_span)
    found.shows(Rows.EVENTS, events, f"{steps} of events by risk band; a risk score for each agent")
    found.verdicts()
    found.stops()
    found.lacks("No trend can be drawn without events", when=events == 0)
    found.lacks_events()
    found.lacks_entries()
    found.lacks("The provider's post-market monitoring plan (Article 72(3)) is not recorded here")


def incidents(found: Control) -> None:
    found.asks_operator = True
    rest = "to be assessed as possible serious incidents"
    found.shows_number(Rows.HIGH_RISK, found.facts.high_risk_count, "high-risk event", rest)
    found.shows_acts(Rows.REVOCATIONS, "revocation", rest, "certificate.revoked")
    found.incidents()
    clocks = ", ".join(f"{AI_ACT[harm].span.days} days {when}" for when, harm in REPORTING_CLOCKS.items())
    found.lacks(
        f"Whether any is a serious incident is for people to judge; the clocks from awareness: {clocks}"
    )
    found.lacks_events()
    found.lacks_entries()


CONTROLS: dict[str, Callable[[Control], None]] = {
    "aia-12-2-a": logging_of_risks,
    "aia-12-2-b": logging_for_monitoring,
    "aia-12-2-c": logging_of_operation,
    "aia-13": identity_and_limits,
    "aia-14": oversight,
    "aia-19-26-6": lambda found: found.retention(least=SIX_MONTHS, words="six months"),
    "aia-26-5": monitoring,
    "aia-72": trends,
    "aia-73": incidents,
}
"""What is found for each provision, in the order of the articles."""
