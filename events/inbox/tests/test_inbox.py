"""The review inbox: what waits, what officers decide in place, and what others only read."""

from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents.models import Agent, AgentStatus
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.tests.console import actor_id_of, console_of, make_member, make_operator
from events.inbox import decisions
from events.inbox.models import AgentQueue, InboxComment, OpenEvent
from events.models import BehaviorEvent, EventReview
from events.tests.factories import make_event, make_high_event, make_open_event as opened, store_event
from tenancy.models import Role, Tenant
from tenancy.tests.factories import make_tenant

INBOX = "admin:inbox_openevent_changelist"


@pytest.fixture(scope="module")
def acme(world_transaction: None) -> Tenant:
    return make_tenant("Acme")


@pytest.fixture(scope="module")
def lasting_agent(acme: Tenant) -> Agent:
    return make_agent(acme)


@pytest.fixture(scope="module")
def lasting_officer(acme: Tenant) -> User:
    return make_member(acme, Role.OFFICER)


@pytest.fixture
def agent(lasting_agent: Agent) -> Agent:
    return Agent.objects.get(id=lasting_agent.id)


@pytest.fixture
def certified(acme: Tenant) -> Agent:
    return make_certified_agent(acme)


@pytest.fixture
def officer(lasting_officer: User) -> Client:
    return console_of(User.objects.get(id=lasting_officer.id))


def shown(client: Client, **query: Any) -> Any:
    return client.get(reverse(INBOX), query).context


def selected(client: Client, **query: Any) -> Any:
    found = shown(client, **query)["inbox"].selected
    return found.pk if found else None


def act(client: Client, act: str, event: BehaviorEvent, query: str = "", **data: Any) -> Any:
    given = {"act": act, "agent": event.agent_id, "event": event.id, **data}
    return client.post(reverse(INBOX) + query, given)


def verdicts(event: BehaviorEvent) -> list[str]:
    return [review.verdict for review in EventReview.objects.of_event(event.id)]


def entries(tenant: Tenant, action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.for_tenant(tenant.id).of_type(action))


# --- What waits --------------------------------------------------------------------------------------


def test_ingest_opens_what_is_not_low(certified: Agent) -> None:
    high = make_high_event(certified)
    low = make_event(certified)

    row = OpenEvent.objects.get(agent=certified)

    assert low.risk_band == "low"
    assert (str(row.event_id), row.risk_band, row.risk_score) == (high.id, high.risk_band, high.risk_score)
    assert (row.received_at, row.tenant_id) == (high.received_at, certified.tenant_id)


def test_agents_and_their_events_come_oldest_first(acme: Tenant, agent: Agent, officer: Client) -> None:
    other = make_agent(acme, name="other")
    newest, oldest = opened(agent, minutes_ago=1), opened(other, 0.5, minutes_ago=9)
    second = opened(other, minutes_ago=3)

    page = shown(officer)

    assert [group["name"] for group in page["groups"]] == ["other", agent.name]
    assert [(group["high"], group["medium"]) for group in page["groups"]] == [(1, 1), (1, 0)]
    assert page["inbox"].selected.pk == oldest.id
    assert [row["id"] for row in page["events"]] == [oldest.id, second.id]
    assert newest.id not in {row["id"] for row in page["events"]}


def test_dossier_tells_what_a_verdict_needs(acme: Tenant, agent: Agent, officer: Client) -> None:
    reasons = [{"name": "external_host", "observed": "evil.example", "expected": "", "weight": 1.5}]
    before = store_event(agent, 0.1, now() - timedelta(minutes=12), action_type="data_access")
    opened(agent, minutes_ago=10)
    event = opened(agent, minutes_ago=5, details={"to": "mule-7"}, reasons=reasons)
    after = store_event(agent, 0.1, now() - timedelta(minutes=1))

    answer = officer.get(reverse(INBOX), {"event": str(event.id)})

    told, html = answer.context["dossier"], answer.content.decode()
    assert told["strikes"] == "2 of 3"
    assert told["marks"] == ['<code class="console-code">mule-7</code>']
    assert told["before"][0]["id"] == before.id
    assert [row["id"] for row in told["after"]] == [after.id]
    assert "evil.example" in html


# --- Decisions ---------------------------------------------------------------------------------------


def test_first_decision_takes_one_click_and_shows_the_next_event(agent: Agent, officer: Client) -> None:
    first, second = opened(agent, minutes_ago=2), opened(agent, minutes_ago=1)
    page = officer.get(reverse("admin:index")).context

    answer = act(officer, "dismiss", page["dossier"]["event"], page["links"]["here"])
    following = officer.get(answer.url).context

    assert verdicts(first) == ["dismissed"]
    assert following["inbox"].selected.pk == second.id
    assert following["inbox"].high == 1


def test_verdict_keeps_note_and_case_number(acme: Tenant, agent: Agent, officer: Client) -> None:
    event = opened(agent, details={"to": "mule-7"})

    act(officer, "confirm", event, note="not ordered", case_number="C-17")

    review = EventReview.objects.of_event(event.id).get()
    (entry,) = entries(acme, "event.reviewed")
    assert (review.verdict, review.note, review.case_number) == ("confirmed", "not ordered", "C-17")
    assert review.marked == ["mule-7"]
    assert entry.actor_id == review.actor_id
    assert (entry.metadata or {})["case_number"] == "C-17"
    assert not OpenEvent.objects.filter(event_id=event.id).exists()


def test_event_reviewed_elsewhere_leaves_the_inbox(agent: Agent, officer: Client) -> None:
    event = opened(agent)

    officer.post(reverse("admin:events_behaviorevent_confirm", args=[event.pk]))

    assert selected(officer) is None


def test_verdict_of_a_colleague_is_not_overwritten(acme: Tenant, agent: Agent, officer: Client) -> None:
    event = opened(agent)
    act(console_of(make_member(acme, Role.OFFICER, "ada")), "confirm", event)

    answer = officer.get(act(officer, "dismiss", event).url)

    assert verdicts(event) == ["confirmed"]
    assert "Somebody else reviewed this event" in answer.content.decode()


def test_ticked_events_are_decided_together(acme: Tenant, agent: Agent, officer: Client) -> None:
    ticked = [opened(agent, minutes_ago=count) for count in (3, 2)]
    left = opened(agent, minutes_ago=1)
    gone = opened(agent, minutes_ago=5)
    act(officer, "confirm", gone)

    ids = [event.id for event in (*ticked, gone)]
    answer = act(officer, "dismiss_ticked", left, ticked=ids, note="drill")

    assert [verdicts(event) for event in (*ticked, left, gone)] == [["dismissed"]] * 2 + [[], ["confirmed"]]
    page = officer.get(answer.url)
    assert "2 events dismissed." in page.content.decode()
    assert "Left as they were: 1" in page.content.decode()
    assert page.context["inbox"].selected.pk == left.id


def test_identical_events_are_one_row_and_ticked_together(agent: Agent, officer: Client) -> None:
    same = [opened(agent, minutes_ago=count, details={"to": "mule"}) for count in (6, 5, 3)]
    other = opened(agent, minutes_ago=4, details={"to": "shop"})
    page = shown(officer)

    again = officer.get(reverse(INBOX) + page["links"]["all"])
    act(officer, "dismiss_ticked", other, ticked=page["events"][0]["ids"])

    assert [(row["count"], row["is_ticked"]) for row in page["events"]] == [(3, False), (1, False)]
    assert [row["is_ticked"] for row in again.context["events"]] == [True, True]
    assert [verdicts(event) for event in (*same, other)] == [["dismissed"]] * 3 + [[]]


def test_evidence_stands_before_the_buttons_and_no_verdict_is_urged(agent: Agent, officer: Client) -> None:
    event = opened(agent, details={"to": "mule-77"})

    html = officer.get(reverse(INBOX)).content.decode()
    banner = officer.get(act(officer, "dismiss", event).url).content.decode()

    assert html.index("mule-77") < html.index("Why it scored so") < html.index('value="dismiss"')
    assert "inbox-button primary" not in html
    assert f"of {agent.name}, ordinary" in banner
    assert reverse("admin:events_behaviorevent_change", args=[event.id]) in banner


@pytest.mark.parametrize("ticked", [[], ["x"], ["\x00"], "many"])
def test_nonsense_ticked_changes_nothing(agent: Agent, officer: Client, ticked: Any) -> None:
    event = opened(agent)
    ticked = [f"01a1fac7-5ae4-7687-b534-{count:012d}" for count in range(51)] if ticked == "many" else ticked

    answer = act(officer, "dismiss_ticked", event, ticked=ticked)

    assert answer.status_code == 302
    assert verdicts(event) == []


def test_agent_is_suspended_in_place(acme: Tenant, certified: Agent, officer: Client) -> None:
    event = opened(certified)

    answer = act(officer, "suspend", event, note="odd payee", case_number="C-18")

    certified.refresh_from_db()
    comment = InboxComment.objects.get(agent=certified)
    assert (certified.status, certified.status_reason) == (AgentStatus.SUSPENDED, "odd payee")
    assert (comment.kind, comment.text, comment.case_number) == ("suspended", "odd payee", "C-18")
    assert len(entries(acme, "agent.suspended")) == len(entries(acme, "inbox.commented")) == 1
    assert officer.get(answer.url).context["inbox"].selected.pk == event.id


def test_certificate_is_revoked_in_place(acme: Tenant, certified: Agent, officer: Client) -> None:
    event = opened(certified)

    act(officer, "revoke", event, note="key compromise: laptop lost")

    certificate = Certificate.objects.get(agent=certified)
    assert (certificate.status, certificate.revocation_reason) == ("revoked", "key compromise: laptop lost")
    assert InboxComment.objects.get(agent=certified).kind == "revoked"
    assert act(officer, "revoke", event, note="again").status_code == 302
    assert InboxComment.objects.filter(agent=certified).count() == 1


@pytest.mark.parametrize(
    ("name", "note", "told"),
    [
        ("suspend", "", "why the agent is suspended"),
        ("revoke", "  ", "why the certificate is revoked"),
        ("suspend", "x" * 501, "at most 500 characters"),
        ("comment", "", "Write the comment"),
        ("dismiss", "x" * 1001, "at most 1000 characters"),
    ],
)
def test_missing_or_long_note_is_told_and_nothing_is_lost(
    agent: Agent, officer: Client, name: str, note: str, told: str
) -> None:
    opened(agent, minutes_ago=2)
    event = opened(agent, minutes_ago=1)

    answer = act(officer, name, event, note=note, case_number="C-19")

    html = answer.content.decode()
    agent.refresh_from_db()
    assert told in html
    assert 'value="C-19"' in html
    assert answer.context["inbox"].selected.pk == event.id
    assert (agent.status, verdicts(event)) == (AgentStatus.PENDING, [])


# --- Comments, assignment, snoozing ----------------------------------------------------------------


def test_comment_is_kept_and_audited(acme: Tenant, agent: Agent, officer: Client) -> None:
    event = opened(agent)

    answer = act(officer, "comment", event, note="asked <b>the owner", case_number="C-20")

    assert "asked &lt;b&gt;the owner" in officer.get(answer.url).content.decode()
    (entry,) = entries(acme, "inbox.commented")
    assert (entry.affected_id, (entry.metadata or {})["case_number"]) == (str(agent.id), "C-20")
    listed: Any = officer.get(reverse("admin:auditlog_auditentry_changelist"), {"q": "owner"})
    assert list(listed.context["cl"].result_list) == [entry]


def test_comment_names_no_event_of_another_agent(agent: Agent, officer: Client) -> None:
    foreign = opened(make_agent(make_tenant("Rival")))

    officer.post(reverse(INBOX), {"act": "comment", "agent": agent.id, "event": foreign.id, "note": "Odd."})

    assert [row.event_id for row in InboxComment.objects.filter(agent=agent)] == [None]


def test_events_of_an_agent_are_assigned(acme: Tenant, agent: Agent, officer: Client) -> None:
    event = opened(agent)
    ada = console_of(make_member(acme, Role.OFFICER, "ada"))
    mine = next(actor_id for actor_id, _ in shown(ada)["dossier"]["reviewers"])

    act(officer, "assign", event, assignee=mine)

    assert selected(ada, shown="mine") == event.id
    assert selected(officer, shown="mine") is selected(officer, shown="nobody") is None
    act(ada, "assign", event, assignee="")
    assert selected(officer, shown="nobody") == event.id
    said = [(entry.metadata or {})["after"] for entry in entries(acme, "inbox.assigned")]
    assert said == [None, mine]


def test_only_officers_of_the_tenant_are_assigned(acme: Tenant, agent: Agent, officer: Client) -> None:
    make_member(acme, Role.AUDITOR)
    make_member(make_tenant("Rival"), Role.OFFICER, "rival")
    event = opened(agent)

    for name in (actor_id_of("auditor"), actor_id_of("rival"), "nonsense"):
        act(officer, "assign", event, assignee=name)

    assert not AgentQueue.objects.filter(assignee__isnull=False).exists()


def test_snoozed_agent_returns_in_time_or_with_a_high_event(agent: Agent, officer: Client) -> None:
    event = opened(agent, 0.5, minutes_ago=3)

    act(officer, "snooze", event, span="4")
    asleep = selected(officer), selected(officer, shown="snoozed")
    AgentQueue.objects.update(snoozed_until=now() + timedelta(hours=1))
    Agent.objects.filter(id=agent.id).update(last_high_risk_at=now())
    woken = selected(officer)

    assert asleep == (None, event.id)
    assert woken == event.id


def test_snooze_is_ended_and_audited(acme: Tenant, agent: Agent, officer: Client) -> None:
    event = opened(agent)
    act(officer, "snooze", event, span="4")

    act(officer, "snooze", event, "?shown=snoozed", span="")
    act(officer, "snooze", event, span="1000")

    assert selected(officer) == event.id
    assert len(entries(acme, "inbox.snoozed")) == 2


# --- Filters -----------------------------------------------------------------------------------------


def test_filters_narrow_and_stay(acme: Tenant, agent: Agent, officer: Client) -> None:
    opened(agent, 0.5, minutes_ago=4)
    high = opened(agent, minutes_ago=3)
    opened(make_agent(acme, name="other"), minutes_ago=5)
    query = {"band": "high", "q": agent.name}

    page = officer.get(reverse(INBOX), query).context
    answer = act(officer, "comment", high, page["links"]["here"], note="seen")

    kept = {name: value[0] for name, value in parse_qs(urlsplit(answer.url).query).items()}
    assert (page["inbox"].high, page["inbox"].medium, page["inbox"].selected.pk) == (1, 0, high.id)
    assert kept == {**query, "agent": str(agent.id), "event": str(high.id)}


@pytest.mark.parametrize(
    "query",
    [
        {"band": "low", "shown": "x", "page": "0"},
        {"page": "99999999999999999999"},
        {"page": "٣"},
        {"q": "\x00"},
        {"q": "x" * 10_000},
        {"event": "nonsense", "agent": "\x00", "after": "%", "tenant": "x"},
        {"event": "01a1fac7-5ae4-7687-b534-3193b75b5368"},
    ],
)
def test_nonsense_in_the_address_is_ignored(agent: Agent, officer: Client, query: dict[str, str]) -> None:
    event = opened(agent)

    answer = officer.get(reverse(INBOX), query)

    assert answer.status_code == 200
    assert answer.context["inbox"].selected.pk == event.id


@pytest.mark.parametrize(
    "data", [{}, {"act": "nonsense"}, {"act": "dismiss"}, {"act": "dismiss", "agent": "x"}]
)
def test_nonsense_in_a_form_changes_nothing(agent: Agent, officer: Client, data: dict[str, str]) -> None:
    event = opened(agent)

    answer = officer.post(reverse(INBOX), {"event": event.id, **data})

    assert answer.status_code == 302
    assert verdicts(event) == []


# --- Who may -----------------------------------------------------------------------------------------

ACTS = list(decisions.ACTS)


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.DEVELOPER])
def test_others_only_read(acme: Tenant, agent: Agent, role: Role) -> None:
    event = opened(agent)
    client = console_of(make_member(acme, role))

    answers = [act(client, name, event, note="x", ticked=[event.id], span="1") for name in ACTS]

    page = client.get(reverse(INBOX))
    assert {answer.status_code for answer in answers} == {403}
    assert verdicts(event) == []
    assert not InboxComment.objects.filter(agent=agent).exists()
    assert not AgentQueue.objects.filter(agent=agent).exists()
    assert page.context["inbox"].selected.pk == event.id
    assert 'name="act"' not in page.content.decode()


def test_foreign_events_do_not_exist(acme: Tenant, agent: Agent) -> None:
    event, rival = opened(agent), make_tenant("Rival")
    own = opened(make_agent(rival), minutes_ago=1)
    client = console_of(make_member(rival, Role.OFFICER, "theirs"))
    given: dict[str, Any] = {"note": "x", "ticked": [event.id], "span": "1"}

    foreign = [act(client, name, event, **given) for name in ACTS]
    mixed = [
        client.post(reverse(INBOX), {"act": name, "agent": own.agent_id, "event": event.id, **given})
        for name in ACTS
    ]

    assert {answer.status_code for answer in foreign + mixed} == {302}
    assert verdicts(event) == []
    assert not InboxComment.objects.filter(tenant=acme).exists()
    assert not AgentQueue.objects.filter(tenant=acme).exists()
    assert Agent.objects.get(id=agent.id).status == agent.status
    assert selected(client, event=event.id) != event.id


def test_page_makes_few_queries(acme: Tenant, agent: Agent, django_assert_max_num_queries: Any) -> None:
    for count in range(30):
        last = opened(agent, minutes_ago=count, details={"to": f"mule-{count}"})
        opened(make_agent(acme, name=f"agent {count}"), minutes_ago=count)
    client = console_of(make_operator())
    client.get(reverse(INBOX))

    with django_assert_max_num_queries(25):  # four of them bound the reading
        client.get(reverse(INBOX), {"event": str(last.id)})
