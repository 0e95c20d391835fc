"""Every sentence of both reports against rows counted by SQL of this file, over seven worlds.

A sentence that no line of `SENTENCES` knows fails, and so does a figure that the SQL does not give.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from django.conf import settings
from django.db import connections

from compliance.core.environments import Environment
from compliance.core.wording import spoken
from reports.content.builder import assess, build
from reports.content.controls import Control
from reports.content.regulations import REGULATIONS
from reports.content.sources import DEFINITIONS, Rows
from reports.tests import worlds
from reports.tests.rows_by_sql import (
    ACTORS,
    BY,
    COUNTS,
    ENTRIES,
    EVENTS,
    GUARDED,
    HIGH,
    IF_NONE,
    MOMENTS,
    PARTITIONS,
    REACH_BACK,
    RETAINED,
    TIMES,
    TRANSACTIONS,
    VALUES,
    of,
)
from reports.tests.worlds import World
from reports.vocabulary import ControlState, ReportType

KINDS = {name: kind for kind in ReportType for name in REGULATIONS[kind].provisions}
WORLDS = ("full", "empty", "partial", "dropped", "tampered", "erased", "test")
# The state in each world: evidenced, partial, not evidenced, or for the operator.
LETTERS = dict(zip(ControlState, "EPNO", strict=True))
STATES = {
    "aia-12-2-a": "E N P P P E E",
    "aia-12-2-b": "P N P P P P P",
    "aia-12-2-c": "P N P P P P P",
    "aia-13": "P P P P P P P",
    "aia-14": "P P P P P P P",
    "aia-19-26-6": "P P P P P P P",
    "aia-26-5": "P N P P P P P",
    "aia-72": "P N P P P P P",
    "aia-73": "O O O O O O O",
    "mica-2025-1140-2-a": "P N P P P P P",
    "mica-2025-1140-2-b": "P O P P P P P",
    "mica-2025-1140-2-c": "P O P P N P P",
    "mica-2025-1140-2-d": "P O P P P P P",
    "mica-2025-1140-2-e": "O O O O O O O",
    "mica-2025-1140-8-10": "P N P P P P P",
    "mica-68-9": "P P P P P P P",
    "dora-10": "P N P P P P P",
    "dora-17": "P P P P P P P",
    "policy-certificate-validity": "P P P P P P P",
    "policy-automatic-stops": "P O P P P P P",
}

# The rows of each set; the oldest records and the archives are counted in their sentences.
ROWS = {
    Rows.EVENTS: "events",
    Rows.TRANSACTIONS: "transactions",
    Rows.HIGH_RISK: "high",
    Rows.REVIEWED: "reviewed",
    Rows.INTERVENTIONS: "interventions",
    Rows.APPROVALS: "approvals",
    Rows.APPROVED_ACTS: "uses",
    Rows.STOPS: "stops",
    Rows.SUSPENSIONS: "suspensions",
    Rows.REVOCATIONS: "revocations",
    Rows.HOLDS: "holds",
    Rows.RELEASES: "releases",
    Rows.INCIDENTS: "incidents",
    Rows.EXPORTS: "exports",
    Rows.CERTIFICATES: "certificates",
    Rows.AGENTS: "agents",
    Rows.OWNED: "owned",
    Rows.ACCESS_REVIEWS: "access_reviews",
    Rows.ACCESS_DECISIONS: "decisions",
    Rows.AGENT_CHANGES: "changes",
    Rows.MODE_CHANGES: "modes",
    Rows.DELEGATIONS: "delegations",
    Rows.VERIFIED_DELEGATIONS: "verified_roots",
    Rows.AUDIT_ENTRIES: "entries",
    Rows.SEALED_ENTRIES: "sealed",
}

TAMPERED = "the audit log was tampered with"
EVIDENCE = {
    "{events} events? received and scored, {high} high-risk": Rows.EVENTS,
    r"Events by risk band over (?:{days} days?|{months} months?) are part of this report": Rows.EVENTS,
    "(?:{days} days?|{months} months?) of events by risk band; a risk score for each agent": Rows.EVENTS,
    "Events of {kinds} kinds? of action, with time and agent": Rows.EVENTS,
    (
        "{changes} changes? of agents' profiles audited(?: with the fields changed)?: {by:changes}"
    ): Rows.AGENT_CHANGES,
    (
        "{reviewed} of {high} high-risk events? reviewed: {confirmed} confirmed as part of an attack, "
        "{dismissed} dismissed; {by:verdicts}; from event to first review: median {review_median}, longest "
        "{review_longest}"
    ): Rows.REVIEWED,
    "{agents} agents? registered, with a model hash as the caller stated it": Rows.AGENTS,
    (
        "{certificates} certificates? in force at some time in the period, binding version and scope to a key"
    ): Rows.CERTIFICATES,
    (
        "{certificates} certificates? in force at some time in the period; at its end {standing} in force, "
        "{on_hold} on hold, {revoked_for_good} revoked for good, {expired} expired"
    ): Rows.CERTIFICATES,
    (
        "{short_lived} certificates? in force at some time in the period, valid up to 365 days"
    ): Rows.CERTIFICATES,
    (
        "{interventions} interventions? by people in the console, reviews of events among them"
    ): Rows.INTERVENTIONS,
    "{owned} agents? with an owner who answers for it when this report was generated": Rows.OWNED,
    "{access_reviews} access reviews? finished, each with a signed record": Rows.ACCESS_REVIEWS,
    (
        "{decisions} decisions? on whether an agent still needs what it may do: {by:decisions}"
    ): Rows.ACCESS_DECISIONS,
    "{approvals} questions? of agents answered before the act: {by:approvals}": Rows.APPROVALS,
    ("{uses} approved acts? done, each with a receipt that is good once: {by:uses}"): Rows.APPROVED_ACTS,
    "{suspensions} suspensions? audited, with who and when: {by:suspensions}": Rows.SUSPENSIONS,
    "{revocations} revocations? of a certificate for good: {by:revocations}": Rows.REVOCATIONS,
    "{holds} holds? put on a certificate: {by:holds}": Rows.HOLDS,
    "{releases} holds? lifted: {by:releases}": Rows.RELEASES,
    (
        "{stops} automatic stops? made by the service; from the receipt of the last strike to the stop: "
        "median {stop_median}, longest {stop_longest}"
    ): Rows.STOPS,
    (
        "{stops} automatic stops? made by the service, stamped with the receipt of the last strike: "
        "both are one {instant} of the clock"
    ): Rows.STOPS,
    "The oldest event stored is {event_age} old \\({event_at} UTC\\)": Rows.OLDEST,
    "The oldest audit entry stored is {entry_age} old \\({entry_at} UTC\\)": Rows.OLDEST,
    "{archived} partitions? of events archived, with its SHA-256 in the audit log": Rows.ARCHIVES,
    "{high} high-risk events? to be assessed as possible serious incidents": Rows.HIGH_RISK,
    (
        "{revocations} revocations? to be assessed as possible serious incidents: {by:revocations}"
    ): Rows.REVOCATIONS,
    "{incidents} incidents? opened: {by:incidents}; when this report was generated {states}": Rows.INCIDENTS,
    "{entries} audit entr(?:y|ies) in the order of their making: {by:entries}": Rows.AUDIT_ENTRIES,
    "{transactions} transaction events? with agent, time, details and risk": Rows.TRANSACTIONS,
    "{transactions} transaction events? with the agent that reported it": Rows.TRANSACTIONS,
    "{modes} changes? of modes audited with what stood before: {by:modes}": Rows.MODE_CHANGES,
    (
        "{sealed} of {entries} audit entries hashed anew: their hashes lead to the root of the signed "
        "checkpoint of {size} entries, {root}"
    ): Rows.SEALED_ENTRIES,
    "{exports} exports? of audit entries from the console in the period: {by:exports}": Rows.EXPORTS,
    "{delegations} delegations? audited with the whole chain: {by:delegations}": Rows.DELEGATIONS,
    (
        "{verified_roots} delegations? rooted in a person whom an ID token of a trusted issuer proved"
    ): Rows.VERIFIED_DELEGATIONS,
}
# Sentences of gaps and assertions; SQL that must hold where a sentence has no figure of its own.
OTHERS = {
    "{unreviewed} high-risk events? without a review": "",
    "{verdicts_of_keys} verdicts? by API keys, not by people in the console": "",
    "{silent} active agents? without an event stored of the period": "",
    "{overdue_reviews} access reviews? fell overdue": "",
    "{orphaned} agents? without an owner when this report was generated": "",
    "{nameless} agents? without a model name or version": "",
    "{scopeless} agents? without declared permitted actions": "",
    "{uncertified} active agents? without an active certificate when this report was generated": "",
    "{observed} agents? only observed, at least part of the time: no automatic stop then": "",
    "{stops_not_made} automatic stops? recorded but not made, as the agent was only observed": "",
    "{unlinked} transaction events? named no chain and no session": "",
    "{asserted_roots} delegations? rooted in a person by the word of the caller alone": "",
    "{agents} agents? with the model hash that the caller stated": "",
    "{no_roots} delegations? naming no person at the root": "",
    "{unscoped} delegations? by agents that declare no scope": "",
    "{unsealed} audit entr(?:y|ies) not yet under a signed checkpoint": "",
    f"{{changed}} audit entr(?:y|ies) not as sealed: {TAMPERED}": "",
    (
        "{places} places? of the audit log around the period without its entry, whosever it was: "
        f"{TAMPERED}"
    ): "",
    (
        "{erased_parts} parts? of {erased_entries} audit entr(?:y|ies) of the period erased: only hashes "
        "are left"
    ): "",
    (
        "{parts_erased_then} parts? of {entries_erased_then} audit entr(?:y|ies) of any time erased in the "
        "period, by {erasures} erasures?: {by:erasures}"
    ): "",
    "Events are kept for {event_days} days by the present settings": "",
    "Audit entries are kept for {entry_days} days by the present settings": "",
    "Events: the operator's configuration says {set:EVENT}": "",
    "Audit entries: the operator's configuration says {set:AUDIT}": "",
    "audit_verify found all {verified_size} entries of the log as they were sealed, on {verified_at} UTC": "",
    "The period had not ended: nothing after {end_at} UTC counts": "",
    "Events received before {dropped_before} were dropped and are not counted here": "",
    "{enforced} agents? would have been stopped over the threshold; no stop was made in the period": (
        IF_NONE.format(of("agent.high_risk"))
    ),
    "(?:Records|Events) are kept for less than (?:the seven years|five years).*": "SELECT %(kept)s < 1827",
    "Archived events were dropped: .*": f"SELECT count(*) > 0 {PARTITIONS} AND archived AND dropped",
    "The records stored do not reach back six months": REACH_BACK.format(183),
    "The records stored do not reach back five years": REACH_BACK.format(1827),
    "Since when the retention of events is set so is not recorded yet": (
        f"SELECT NOT EXISTS ({RETAINED.format('EVENT')})"
    ),
    "Since when the retention of audit entries is set so is not recorded yet": (
        f"SELECT NOT EXISTS ({RETAINED.format('AUDIT')})"
    ),
    "No event (?:was received in the period|is stored of the period|of the period is stored)": IF_NONE.format(
        EVENTS
    ),
    "No trend can be drawn without events": IF_NONE.format(EVENTS),
    "No event and no audit entry of the period is stored": (
        f"SELECT NOT EXISTS (SELECT {EVENTS}) AND NOT EXISTS (SELECT {ENTRIES})"
    ),
    "No high-risk event is stored of the period": IF_NONE.format(HIGH),
    "No transaction event is stored of the period: there is nothing to attribute": IF_NONE.format(
        TRANSACTIONS
    ),
    "No export from the console is on record in the period": IF_NONE.format(of("audit.exported")),
    "Nothing was stopped in the period: .*": IF_NONE.format(
        f"{ENTRIES} AND event_type IN ('agent.suspended', 'certificate.held', 'certificate.revoked')"
    ),
    "No witness has cosigned the audit log: .*": "SELECT NOT bool_or(has_quorum) FROM auditlog_signedhead",
    "Entries name the fields changed, not their former values": (
        f"SELECT count(*) > 0 {of('agent.updated')}"
    ),
    "A trigger that guards the audit log is missing or disabled": (f"SELECT NOT ({GUARDED})"),
    "The database's triggers against changing, .*": (GUARDED),
}
# Not of rows: the law, what the service is built to do, and what the operator has to show.
UNCOUNTED = (
    ".* is for the operator to show",
    ".* (?:is|are|was|were) not (?:recorded here|part of this report)",
    "Whether any is a serious incident is for people to judge; the clocks from awareness: .*",
    "Instructions for use .* are the provider's and are not kept here",
    "Orders and executions themselves are kept by the trading systems, not here",
    "Every change of state writes an audit entry in the same transaction",
    "Audit entries are exported as JSON Lines and CSV; .*",
    "Classification .* are not part of this report",
)


WORD = re.compile(r"\{([a-zA-Z_]+(?::[a-zA-Z]+)?)\}")


class Judge:
    """Compares sentences with what SQL gives in the world that stands; `used` has all that were known."""

    used: set[str] = set()

    def __init__(self, world: World) -> None:
        frame = world.frame
        days = settings.EVENT_RETENTION_DAYS, settings.AUDIT_RETENTION_DAYS
        self._alias = Environment(frame.environment).alias
        self._given: dict[str, Any] = {
            "tenant": frame.tenant_id,
            "start": frame.start,
            "end": min(frame.end, frame.generated_at),
            "generated_at": frame.generated_at,
            "tampered": world.tampered,
            **dict(zip(("event", "entry", "kept"), (*days, min(days)), strict=True)),
        }

    def problems(self, control: Control) -> list[str]:
        """Return the sentences of a control that are untrue or unknown."""
        found = [
            each.text
            for each in control.evidence
            if not self._is_true(each.text, EVIDENCE, each.rows, each.count)
        ]
        others = (*control.gaps, *control.asserted)
        return [*found, *(text for text in others if not self._is_true(text, OTHERS))]

    def figure(self, name: str) -> Any:
        """Return how many rows a word in braces stands for."""
        return self._ask(f"SELECT count(*) {COUNTS[name]}")[0][0]

    def by(self, rows: str) -> dict[str, int]:
        return dict(self._ask(f"SELECT actor_kind, count(*) {rows} GROUP BY 1"))

    def _is_true(self, text: str, known: dict[str, Any], rows: Any = "", count: int = 0) -> bool:
        for sentence, expected in known.items():
            pattern, names = compiled(sentence)
            if match := pattern.fullmatch(text):
                self.used.add(sentence)
                told = [(name, word) for name, word in zip(names, match.groups(), strict=True) if word]
                if rows:
                    is_counted = expected == rows and (rows not in ROWS or self.figure(ROWS[rows]) == count)
                else:
                    is_counted = not expected or self._ask(expected)[0][0]
                return is_counted and all(word in self._words(name) for name, word in told)
        return not rows and any(re.fullmatch(each, text) for each in UNCOUNTED)

    def _words(self, name: str) -> set[str]:
        """Return what may stand for a word in braces."""
        kind, _, of_what = name.partition(":")
        if kind == "by":
            by = self.by(BY[of_what])
            return {", ".join(f"{by[each]:,} by {who}" for each, who in ACTORS if each in by)}
        if kind == "set":
            rows = self._ask(RETAINED.format(of_what))
            return {
                f"{days:,} days since {at:%Y-%m-%d %H:%M} UTC or shortly before; "
                + (f"{before:,} days before" if before else "nothing recorded before")
                for days, at, before in rows
            }
        if name in TIMES:
            return {spoken(self._ask(TIMES[name])[0][0])}
        if name in MOMENTS:
            moments = [row[0] for row in self._ask(MOMENTS[name])]
            return {f"{moment:{form}}" for moment in moments for form in ("%Y-%m-%d %H:%M", "%Y-%m-%d")}
        figures = [self.figure(name)] if name in COUNTS else [row[0] for row in self._ask(VALUES[name])]
        return {f"{figure:,}" if isinstance(figure, int) else figure for figure in figures}

    def _ask(self, statement: str) -> list[Any]:
        with connections[self._alias].cursor() as cursor:
            cursor.execute(statement, self._given)
            rows: list[Any] = cursor.fetchall()
        return rows


@cache
def compiled(sentence: str) -> tuple[re.Pattern[str], list[str]]:
    parts = WORD.split(sentence)
    return re.compile("(.+?)".join(parts[::2])), parts[1::2]


@dataclass
class Said:
    """What a world's reports say of it: states, untrue sentences by control, and wrong figures by name."""

    states: dict[str, ControlState]
    problems: dict[str, list[str]]
    figures: dict[str, Any]
    sentences: str


def said(world: World) -> Said:
    judge, controls = (
        Judge(world),
        [control for kind in ReportType for control in assess(kind, world.frame, world.facts)],
    )
    return Said(
        {each.id: each.state for each in controls},
        {each.id: judge.problems(each) for each in controls},
        {
            name: (told, counted)
            for name, told in summary(world).items()
            if told != (counted := judge.figure(name))
        },
        str(controls),
    )


def summary(world: World) -> dict[str, Any]:
    """Return the figures of a report's summary by the words that stand for them."""
    document = build(ReportType.MICA, world.frame, world.facts)
    found, by_band = document["summary"], document["summary"]["events_by_band"]
    certificates, delegations, reviews = (
        found[name] for name in ("certificates", "delegations", "high_risk_reviews")
    )
    return {
        "agents": found["agents"],
        "observed": found["enforcement"]["agents_observed"],
        "stops_not_made": found["enforcement"]["would_have_stopped"],
        "events": found["events"],
        "high": by_band["high"],
        "certificates": certificates["in_force_in_period"],
        "standing": certificates["in_force_at_end"],
        "on_hold": certificates["on_hold_at_end"],
        "revoked_for_good": certificates["revoked_at_end"],
        "confirmed": reviews["confirmed"],
        "dismissed": reviews["dismissed"],
        "unreviewed": reviews["waiting"],
        "verdicts_of_keys": reviews["by"].get("api_key", 0),
        "stops": found["automatic_stops"]["made"],
        "interventions": found["interventions_by_people"],
        "delegations": delegations["issued"],
        "verified_roots": delegations["root_verified"],
        "asserted_roots": delegations["root_asserted"],
        "no_roots": delegations["root_nobody"],
        "entries": sum(sum(by.values()) for by in found["audit_entries"].values()),
        "suspensions": sum(found["audit_entries"].get("agent.suspended", {}).values()),
        "incidents": sum(found["incidents"].values()),
        "parts_erased_then": found["erased"]["parts"],
        "entries_erased_then": found["erased"]["entries"],
    }


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any) -> dict[str, Said]:
    """What each world says and what its rows give, judged while it stands: one excludes the other."""
    found: dict[str, Said] = {}
    for make in (worlds.periods, worlds.tampered, worlds.erased, worlds.sandbox):
        with django_db_blocker.unblock(), make(tmp_path_factory.mktemp("world")) as standing:
            found |= {name: said(world) for name, world in standing.items()}
    return found


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("world", WORLDS)
def test_sentences_say_what_the_rows_say(made: dict[str, Said], world: str, name: str) -> None:
    expected = dict(zip(WORLDS, STATES[name].split(), strict=True))[world]

    assert made[world].problems[name] == []
    assert LETTERS[made[world].states[name]] == expected


@pytest.mark.parametrize("world", WORLDS)
def test_figures_of_the_summary_are_those_of_the_rows(made: dict[str, Said], world: str) -> None:
    assert made[world].figures == {}


def test_every_control_every_set_and_every_sentence_is_tried(made: dict[str, Said]) -> None:
    assert set(STATES) == set(KINDS)
    assert set(DEFINITIONS) == set(Rows) == set(EVIDENCE.values())
    assert {*EVIDENCE, *OTHERS} - Judge.used == set()


def test_nothing_is_evidenced_without_rows_or_beyond_the_end(made: dict[str, Said]) -> None:
    assert ControlState.EVIDENCED not in {*made["empty"].states.values(), *made["partial"].states.values()}


def test_entries_of_a_log_that_was_tampered_with_are_no_evidence_that_none_can_be(
    made: dict[str, Said],
) -> None:
    states = made["tampered"].states

    assert states["mica-2025-1140-2-c"] == ControlState.NOT_EVIDENCED
    assert "hashed anew" not in made["tampered"].sentences
    assert states["policy-automatic-stops"] == ControlState.PARTIAL
