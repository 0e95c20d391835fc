"""Incidents in the console: officers act, auditors read, others see nothing."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.tests.console import console_of, join, make_member
from incidents.console.shown import countdown
from incidents.duties.clocks import Clock, ClockKind
from incidents.models import Incident, TimelineEntry
from incidents.tests.factories import make_closed_incident, make_incident
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

ACTIONS = ("assess", "sent", "note", "attach", "contain", "close")
LIST = "admin:incidents_incident_changelist"


@pytest.fixture
def acme() -> Tenant:
    return make_tenant("Acme")


def page(incident: Incident, name: str = "change") -> str:
    return reverse(f"admin:incidents_incident_{name}", args=[incident.pk])


def act(user: Any, incident: Incident, action: str, /, **fields: Any) -> Any:
    return console_of(user).post(page(incident, action), fields, follow=True)


def kinds(incident: Incident) -> list[str]:
    return [entry.kind for entry in TimelineEntry.objects.of_incidents([incident.id])]


def test_list_shows_running_clocks_and_the_navigation_counts(acme: Tenant) -> None:
    make_incident(acme)
    make_closed_incident(acme)

    html = console_of(make_member(acme, Role.OFFICER)).get(reverse(LIST)).content.decode()

    assert html.count("data-due=") == 1
    assert "DORA: initial notification" in html
    assert "console/clocks.js" in html
    assert "text-red-700 dark:bg-red-500/20 dark:text-red-400" in html


def test_page_shows_clocks_timeline_and_actions_of_an_officer(acme: Tenant) -> None:
    incident = make_incident(acme, is_contained=False)

    html = console_of(make_member(acme, Role.OFFICER)).get(page(incident)).content.decode()

    assert "3 high-risk events within 15 minutes" in html
    assert "Article 73(2)" in html
    for name in ACTIONS:
        assert page(incident, name) in html


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.DEVELOPER])
def test_others_read_and_change_nothing(acme: Tenant, role: Role) -> None:
    incident, reader = make_incident(acme, is_contained=False), make_member(acme, role)

    html = console_of(reader).get(page(incident)).content.decode()

    assert "Timeline" in html
    for name in ACTIONS:
        assert page(incident, name) not in html
        assert act(reader, incident, name, note="n").status_code == 403
    assert kinds(incident) == ["opened"]


def test_officer_merges_by_reference_and_finds_the_incident_by_each_agent(acme: Tenant) -> None:
    officer = make_member(acme, Role.OFFICER)
    first, second = make_incident(acme, agent_name="one"), make_incident(acme, agent_name="two")

    act(officer, first, "merge", into=second.reference.lower(), note="Same attack.")

    console = console_of(officer)
    shown, kept = (console.get(page(row)).content.decode() for row in (first, second))
    changelist = reverse("admin:incidents_incident_changelist")
    assert page(second) in shown
    assert "one" in kept
    assert page(first, "merge") not in shown
    for query in ({"q": "one"}, {"q": str(first.agent_id)}, {"agents__agent_id": str(first.agent_id)}):
        assert second.reference in console.get(changelist, query).content.decode()


def test_merging_into_what_is_not_found_says_so(acme: Tenant) -> None:
    incident, other = make_incident(acme), make_incident(make_tenant("Rival"))
    officer = make_member(acme, Role.OFFICER)

    for into in (other.reference, str(other.id), "INC-x", "nothing"):
        act(officer, incident, "merge", into=into, note="")

    assert kinds(incident) == ["opened"]


def test_officer_assesses_and_the_clocks_follow(acme: Tenant) -> None:
    incident = make_incident(acme, at=now() - timedelta(hours=5))
    aware = f"{now() - timedelta(hours=3):%Y-%m-%dT%H:%M}"

    act(
        make_member(acme, Role.OFFICER),
        incident,
        "assess",
        severity="critical",
        serious_harm="death",
        aware_at=aware,
        dora_class="major",
        note="A person was hurt.",
    )

    found = Incident.objects.get(id=incident.id)
    assert (found.severity, found.serious_harm, found.dora_class) == ("critical", "death", "major")
    assert f"{found.aware_at:%Y-%m-%dT%H:%M}" == aware
    assert found.classified_at is not None
    assert found.owner == ""
    assert sorted(kinds(incident)) == ["changed", "note", "opened"]


def test_officer_states_that_a_report_was_sent(acme: Tenant) -> None:
    incident, officer = make_incident(acme), make_member(acme, Role.OFFICER)
    act(officer, incident, "assess", serious_harm="health")

    answer = act(officer, incident, "sent", report="ai_act.report", note="Receipt 4711")

    assert Incident.objects.get(id=incident.id).ai_act_reported_at is not None
    assert "sent." in answer.content.decode()


def test_contradiction_is_told_and_changes_nothing(acme: Tenant) -> None:
    incident, officer = make_incident(acme), make_member(acme, Role.OFFICER)

    answer = act(officer, incident, "sent", report="dora.final")

    assert "belong to an incident with dora_class major" in answer.content.decode()
    assert "A reporting clock is open" in act(officer, incident, "close").content.decode()
    assert kinds(incident) == ["opened"]


def test_attachment_shows_its_digest_and_hostile_names_are_escaped(acme: Tenant) -> None:
    incident, officer = make_incident(acme, agent_name="<b>bot</b>"), make_member(acme, Role.OFFICER)

    html = act(
        officer, incident, "attach", name="<script>alert(1)</script>", size=12, sha256="ab" * 32
    ).content.decode()

    assert "ab" * 32 in html
    assert "<script>alert(1)" not in html
    assert "<b>bot" not in html


def test_list_of_an_agent_has_its_incidents_alone(acme: Tenant) -> None:
    agent_id = new_id()
    mine, other = make_incident(acme, agent_id=agent_id), make_incident(acme)
    user = make_member(acme, Role.AUDITOR)
    join(user, make_tenant("Second"), Role.AUDITOR)

    html = console_of(user).get(f"{reverse(LIST)}?agents__agent_id={agent_id}").content.decode()

    assert mine.reference in html
    assert other.reference not in html


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (timedelta(days=3, hours=4, minutes=59), "3 d 4 h left"),
        (timedelta(hours=2, minutes=5), "2 h 5 min left"),
        (-timedelta(hours=2, minutes=5), "2 h 5 min over"),
    ],
)
def test_time_left_in_words(left: timedelta, words: str) -> None:
    moment = now()
    clock = Clock(ClockKind.AI_ACT_REPORT, "", True, due_at=moment + left)

    assert words in str(countdown(clock, moment))
