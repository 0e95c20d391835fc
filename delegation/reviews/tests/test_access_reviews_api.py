"""`/v1/access-reviews`: what is shown, what decisions do, and what is signed at the end."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from joserfc import jwk, jws
from joserfc.util import urlsafe_b64decode

from agents.models import Agent, Blueprint, OwnerMail
from agents.tests.factories import make_agent, make_blueprint, make_retired_agent
from auditlog.models import AuditEntry
from certificates import services as certificates
from certificates.issuing import issuance
from certificates.models import Certificate
from compliance.core.clock import now
from compliance.core.errors import Unavailable
from compliance.stores.portions import PATIENCE
from compliance.tests.client import ApiClient
from delegation.reviews import services
from delegation.reviews.models import AccessReview, AccessReviewItem
from delegation.reviews.services import next_quarter
from delegation.reviews.tests.factories import SCOPE, decide, make_scoped_agent, open_review, use
from delegation.stops.tests.factories import copy_agent
from delegation.token_keys.signed_records import root_of
from events.figures.models import ActionDay
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_key
from webhooks.models import Message
from webhooks.tests.factories import make_webhook

PATH = "/v1/access-reviews"


def body(**fields: Any) -> dict[str, Any]:
    due_at = (now() + timedelta(days=14)).isoformat()
    return {"match": {"all": True}, "reviewer": "kim@example.com", "due_at": due_at, **fields}


def item_path(review: AccessReview, agent: Agent) -> str:
    return f"{PATH}/{review.id}/items/{agent.id}"


def scope_of(agent: Agent) -> tuple[Any, Any]:
    agent.refresh_from_db()
    certificate = Certificate.objects.latest_of(agent)
    return agent.permitted_actions, certificate and certificate.claims["permitted_actions"]


def test_a_review_shows_what_agents_may_and_what_they_do(client: ApiClient, tenant: Tenant) -> None:
    agent = make_scoped_agent(tenant, owner_name="Kim", owner_email="kim@example.com")
    use(agent, "wire_funds", "gateway")
    make_retired_agent(tenant)

    opened = client.post(PATH, body())

    shown = opened.json()["data"]
    assert (opened.status_code, shown["state"], shown["agents"], shown["every"]) == (201, "open", 1, None)
    assert client.get(f"{PATH}/{shown['id']}").json()["data"] == shown
    assert client.get(PATH).json()["data"] == [shown]
    (item,) = client.get(f"{PATH}/{shown['id']}/items").json()["data"]
    assert item["agent_id"] == str(agent.id)
    assert [one["name"] for one in item["used"]] == ["place_order"]
    assert (item["permitted_actions"], item["unused"]) == (SCOPE, ["refund", "delete_account"])
    assert (item["refused"], item["owner"], item["decision"]) == (["wire_funds"], "kim@example.com", "")


def test_reduce_removes_exactly_the_unused_and_renews(client: ApiClient, tenant: Tenant) -> None:
    agent = make_scoped_agent(tenant)
    old, review = Certificate.objects.latest_of(agent), open_review(tenant)

    answer = client.post(item_path(review, agent), {"decision": "reduce"})

    item = answer.json()["data"]
    assert (answer.status_code, item["removed_actions"]) == (200, ["refund", "delete_account"])
    assert (item["applied_at"] is not None, item["problem"]) == (True, "")
    assert scope_of(agent) == (["place_order"], ["place_order"])
    assert old is not None
    old.refresh_from_db()
    assert (old.status, old.revocation_code) == ("revoked", "superseded")
    assert item["permitted_actions"] == SCOPE  # as it was decided on
    again = client.post(item_path(review, agent), {"decision": "reduce"})
    assert (again.status_code, again.json()["data"]) == (200, item)
    assert client.post(item_path(review, agent), {"decision": "keep"}).status_code == 409


def test_chosen_names_are_reduced_used_or_not(client: ApiClient, tenant: Tenant) -> None:
    agent = make_scoped_agent(tenant)
    path = item_path(open_review(tenant), agent)

    unknown = client.post(path, {"decision": "reduce", "actions": ["refund", "no_such"]})
    assert unknown.status_code == 422
    assert client.post(path, {"decision": "keep", "actions": ["refund"]}).status_code == 400

    assert client.post(path, {"decision": "reduce", "actions": ["place_order"]}).status_code == 200
    assert scope_of(agent) == (["refund", "delete_account"],) * 2


def test_reduce_never_widens_what_is_certified(tenant: Tenant) -> None:
    agent = make_scoped_agent(tenant)
    agent.metadata = {"permitted_actions": ["place_order", "refund", "added_since"]}
    agent.save()

    (item,) = decide(open_review(tenant), "reduce", agent, actions=["refund"])

    assert scope_of(agent) == (["place_order"],) * 2
    assert item.removed == ["refund", "added_since"]


def test_without_complete_figures_nothing_is_reduced_by_itself(client: ApiClient, tenant: Tenant) -> None:
    agent = make_scoped_agent(tenant)
    ActionDay.objects.filter(agent_id=agent.id).update(names="")
    path = item_path(open_review(tenant), agent)

    assert client.post(path, {"decision": "reduce"}).status_code == 422
    assert client.post(path, {"decision": "reduce", "actions": ["refund"]}).status_code == 200


@pytest.mark.parametrize(
    ("decision", "status", "code"),
    [
        ("keep", "active", ""),
        ("suspend", "suspended", "certificateHold"),
        ("retire", "retired", "cessationOfOperation"),
    ],
)
def test_other_decisions(client: ApiClient, tenant: Tenant, decision: str, status: str, code: str) -> None:
    agent = make_scoped_agent(tenant)
    review = open_review(tenant)

    item = client.post(item_path(review, agent), {"decision": decision, "note": "unused since May"})

    agent.refresh_from_db()
    certificate = Certificate.objects.latest_of(agent)
    assert certificate is not None
    assert (agent.status, certificate.revocation_code) == (status, code)
    assert item.json()["data"]["applied_at"] is not None
    entry = AuditEntry.objects.of_type("access_review.decided").get(tenant_id=tenant.id)
    assert (entry.affected_id, entry.metadata["decision"]) == (str(agent.id), decision)  # type: ignore[index]
    assert client.get(f"{PATH}/{review.id}").json()["data"]["state"] == "done"


def test_what_is_stopped_already_is_carried_out(tenant: Tenant) -> None:
    review_of = [make_scoped_agent(tenant), make_scoped_agent(tenant)]
    review = open_review(tenant)
    other = open_review(tenant)
    decide(other, "retire", *review_of)

    decide(review, "suspend", review_of[0])
    decide(review, "retire", review_of[1])

    review.refresh_from_db()
    assert review.state == "done"


def test_many_are_decided_together_and_carried_out_by_the_task(client: ApiClient, tenant: Tenant) -> None:
    agents = copy_agent(make_scoped_agent(tenant), 60)
    review = open_review(tenant)
    ids = [str(agent.id) for agent in agents]
    kept = decide(review, "keep", agents[0])

    answer = client.post(f"{PATH}/{review.id}/items", {"agent_ids": ids, "decision": "suspend"})

    shown = {one["agent_id"]: one for one in answer.json()["data"]}
    assert (answer.status_code, len(shown)) == (200, 60)
    assert shown[str(kept[0].agent_id)]["decision"] == "keep"
    assert AccessReviewItem.objects.filter(review=review, decision="suspend").count() == 59
    while services.REVIEWS.advance(job_id=review.id, now=now()):
        services.REVIEWS.advance(job_id=review.id, now=now())  # a second worker
    review.refresh_from_db()
    assert review.state == "done"
    assert Agent.objects.for_tenant(tenant.id).filter(status="suspended").count() == 59
    entries = AuditEntry.objects.for_tenant(tenant.id)
    assert entries.of_type("agent.suspended").count() == entries.of_type("certificate.held").count() == 59


def test_a_process_that_dies_leaves_the_decision_to_the_sweep(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_scoped_agent(tenant)
    review = open_review(tenant)

    def dies(**given: Any) -> None:
        raise Unavailable()

    with monkeypatch.context() as patch:
        patch.setattr("delegation.reviews.services.issuance.renew_of_agent", dies)
        (item,) = decide(review, "reduce", agent)
    assert (item.applied_at, item.problem != "") == (None, True)
    assert scope_of(agent) == (["place_order"], SCOPE)
    assert services.REVIEWS.advance(job_id=review.id, now=now()) is False  # not yet
    assert scope_of(agent)[1] == SCOPE

    services.REVIEWS.work_off(job_id=review.id, now=now() + services.TRIED_EVERY)

    review.refresh_from_db()
    assert (review.state, scope_of(agent)[1]) == ("done", ["place_order"])
    assert Certificate.objects.filter(agent=agent).count() == 2


def test_the_sweep_leaves_alone_what_a_process_is_carrying_out(tenant: Tenant) -> None:
    agents = copy_agent(make_scoped_agent(tenant), 12)
    review = open_review(tenant)
    decide(review, "suspend", *agents)
    moment = now()
    first, *_ = AccessReviewItem.objects.filter(review=review).order_by("id")
    AccessReviewItem.objects.filter(id=first.id).update(next_try_at=moment + PATIENCE)

    assert list(AccessReview.objects.idle(moment)) == []
    assert list(AccessReview.objects.idle(moment + PATIENCE)) == [review]


def test_what_could_not_be_carried_out_may_be_decided_anew(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make_scoped_agent(tenant)
    review = open_review(tenant)

    def away(**given: Any) -> None:
        raise Unavailable()

    with monkeypatch.context() as patch:
        patch.setattr("delegation.reviews.services.issuance.renew_of_agent", away)
        decide(review, "reduce", agent)

    (item,) = decide(review, "retire", agent)

    agent.refresh_from_db()
    assert (item.decision, item.applied_at is not None, agent.status) == ("retire", True, "retired")


def test_a_refusal_that_cannot_pass_waits_for_another_decision(client: ApiClient, tenant: Tenant) -> None:
    blueprint = make_blueprint(tenant, permitted_actions=SCOPE)
    agent = make_scoped_agent(tenant, blueprint_id=blueprint.id)
    Blueprint.objects.filter(id=blueprint.id).update(permitted_actions=["refund"])
    review = open_review(tenant)
    path, shown_path = item_path(review, agent), f"{PATH}/{review.id}"
    assert client.get(shown_path).json()["data"]["undecided"] == 1

    item = client.post(path, {"decision": "reduce"}).json()["data"]

    assert item["problem"] == "The agent would go beyond its blueprint: permitted_actions"
    for days in range(3):
        services.sweep(now=now() + timedelta(days=days))
        services.REVIEWS.work_off(job_id=review.id, now=now() + timedelta(days=days))
    assert AccessReviewItem.objects.get(review=review).next_try_at is None
    assert AccessReview.objects.idle(now() + timedelta(days=1)).count() == 0
    shown = client.get(shown_path).json()["data"]
    assert (shown["state"], shown["undecided"]) == ("open", 1)
    assert client.post(path, {"decision": "suspend"}).json()["data"]["problem"] == ""
    shown = client.get(shown_path).json()["data"]
    assert (shown["state"], shown["undecided"]) == ("done", 0)


def test_a_review_whose_last_message_was_lost_is_ended_by_the_sweep(tenant: Tenant) -> None:
    review = open_review(tenant, match={"agent_ids": [str(make_scoped_agent(tenant).id)]})
    AccessReviewItem.objects.filter(review=review).update(decision="keep", applied_at=now(), decided_at=now())
    waiting = open_review(tenant)

    assert list(AccessReview.objects.idle(now())) == [review]
    services.REVIEWS.advance(job_id=review.id, now=now())
    services.REVIEWS.advance(job_id=waiting.id, now=now())

    review.refresh_from_db()
    waiting.refresh_from_db()
    assert (review.state, waiting.state) == ("done", "open")


def test_a_decision_at_which_the_service_fails_does_not_hold_up_the_others(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = [make_scoped_agent(tenant), make_scoped_agent(tenant)]
    review = open_review(tenant)
    renew = issuance.renew_of_agent

    def fails_once(**given: Any) -> Any:
        if given["agent_id"] == first.agent_id:
            raise RuntimeError("not a certificate to sign")
        return renew(**given)

    first = AccessReviewItem.objects.filter(review=review).order_by("id")[0]
    monkeypatch.setattr("delegation.reviews.services.issuance.renew_of_agent", fails_once)
    items = decide(review, "reduce", *agents)

    assert [(one.applied_at is None, one.next_try_at is None) for one in items] == [
        (True, True),
        (False, False),
    ]
    assert items[0].problem == "The service failed at it; see its log"


def test_reduce_is_not_said_to_be_done_while_a_wider_certificate_is_on_hold(tenant: Tenant) -> None:
    agents, held = copy_agent(make_scoped_agent(tenant), 11), make_scoped_agent(tenant)
    review = open_review(tenant)
    decide(review, "suspend", *agents)
    decide(review, "reduce", held)
    asked: dict[str, Any] = {"tenant_id": tenant.id, "agent_id": held.id, "reason": "meanwhile"}
    certificates.suspend_agent(**asked, actor=ACTOR, now=now())

    while services.REVIEWS.advance(job_id=review.id, now=now()):
        pass

    item = AccessReviewItem.objects.get(review=review, agent_id=held.id)
    assert (item.applied_at, item.next_try_at, item.problem != "") == (None, None, True)


def test_a_decision_leaves_what_many_others_wait_for_to_the_task(tenant: Tenant) -> None:
    agents = copy_agent(make_scoped_agent(tenant), 13)
    review = open_review(tenant)
    decide(review, "suspend", *agents[:12])

    (item,) = decide(review, "suspend", agents[12])

    assert item.applied_at is None
    assert not AccessReviewItem.objects.filter(review=review).exclude(applied_at=None).exists()


def test_what_agents_use_takes_the_scope_of_usage(api: ApiClient, tenant: Tenant) -> None:
    agent = make_scoped_agent(tenant)
    review = open_review(tenant)
    narrow = api.as_key(make_key(tenant, ["agents:read", "agents:write", "certificates:revoke"]))
    keep = {"decision": "keep"}

    answers = [
        narrow.get(f"{PATH}/{review.id}/items"),
        narrow.post(item_path(review, agent), keep),
        narrow.post(f"{PATH}/{review.id}/items", {**keep, "agent_ids": [str(agent.id)]}),
    ]

    assert [(one.status_code, one.json()["error"]) for one in answers] == [
        (403, "This API key lacks the scope events:read")
    ] * 3
    assert AccessReviewItem.objects.get(review=review).decision == ""
    assert narrow.get(f"{PATH}/{review.id}").status_code == 200


def test_a_finished_review_has_a_signed_record(client: ApiClient, tenant: Tenant) -> None:
    first, second = make_scoped_agent(tenant), make_scoped_agent(tenant)
    review = open_review(tenant)
    decide(review, "keep", first)
    assert client.get(f"{PATH}/{review.id}/record").status_code == 422
    decide(review, "reduce", second)

    data = client.get(f"{PATH}/{review.id}/record").json()["data"]

    assert client.get(f"{PATH}/{review.id}/record").json()["data"] == data
    keys = jwk.KeySet.import_key_set(client.get("/.well-known/jwks.json").json())
    kid = json.loads(urlsafe_b64decode(data["record"].split(".")[0].encode()))["kid"]
    token = jws.deserialize_compact(data["record"], keys.get_by_kid(kid), algorithms=["ES256"])
    claims = json.loads(token.payload)
    assert token.protected["typ"] == "access-review+jwt"
    assert claims["root"] == root_of(data["lines"]).hex()
    assert (claims["count"], claims["keep"], claims["reduce"], claims["retire"]) == (2, 1, 1, 0)
    by_agent = {line["agent_id"]: line for line in data["lines"]}
    assert by_agent[str(second.id)]["removed_actions"] == ["refund", "delete_account"]
    done = AuditEntry.objects.of_type("access_review.done").get(tenant_id=tenant.id)
    assert done.metadata["root"] == claims["root"]  # type: ignore[index]


def test_owners_the_reviewer_and_webhooks_are_told(tenant: Tenant, settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example"
    make_webhook(tenant, events=["access_review.opened", "access_review.overdue"])
    make_agent(tenant, owner_name="Kim", owner_email="kim.berg@example.com")
    make_agent(tenant)
    review = open_review(tenant)
    assert OwnerMail.objects.count() == 2

    assert services.sweep(now=review.due_at - timedelta(seconds=1)) == 0
    for _ in range(2):
        services.sweep(now=review.due_at)

    review.refresh_from_db()
    assert (review.overdue_at, review.state) == (review.due_at, "open")
    sent = list(Message.objects.order_by("created_at").values_list("event", flat=True))
    assert sent == ["access_review.opened", "access_review.overdue"]
    assert OwnerMail.objects.count() == 3


def test_a_quarterly_review_is_opened_anew_once(client: ApiClient, tenant: Tenant) -> None:
    make_agent(tenant)
    opened = client.post(PATH, body(every="quarter")).json()["data"]
    first = AccessReview.objects.get(id=opened["id"])
    assert first.next_at == next_quarter(now())
    moment = first.next_at

    for _ in range(2):
        services.sweep(now=moment)

    first = AccessReview.objects.get(id=first.id)
    second = AccessReview.objects.for_tenant(tenant.id).exclude(id=first.id).get()
    assert (first.next_at, second.match, second.reviewer) == (None, first.match, first.reviewer)
    assert second.due_at - second.started_at == first.due_at - first.started_at
    assert second.next_at == next_quarter(second.started_at)

    changed = client.patch(f"{PATH}/{second.id}", {"every": None})

    assert changed.json()["data"]["every"] is None
    services.sweep(now=second.started_at + timedelta(days=100))
    assert AccessReview.objects.for_tenant(tenant.id).count() == 2


def test_a_review_due_at_the_end_of_time_is_repeated(client: ApiClient, tenant: Tenant) -> None:
    make_agent(tenant)
    client.post(PATH, body(every="quarter", due_at="9999-12-31T23:59:59Z"))

    services.sweep(now=next_quarter(now()))

    assert AccessReview.objects.for_tenant(tenant.id).count() == 2


def test_a_decision_made_anew_meanwhile_is_still_carried_out(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, review = make_scoped_agent(tenant), open_review(tenant)

    def decided_anew(*_: Any) -> None:
        anew = {"decision": "retire", "decided_at": now(), "next_try_at": now()}
        AccessReviewItem.objects.filter(review=review).update(**anew)

    with monkeypatch.context() as patch:
        patch.setattr(services, "_reduce", decided_anew)
        (item,) = decide(review, "reduce", agent)

    assert (item.decision, item.applied_at) == ("retire", None)
    services.REVIEWS.work_off(job_id=review.id, now=now())
    agent.refresh_from_db()
    assert agent.status == "retired"


@pytest.mark.parametrize(
    ("at", "start"),
    [((2026, 1, 1), (2026, 4, 1)), ((2026, 9, 30), (2026, 10, 1)), ((2026, 12, 31), (2027, 1, 1))],
)
def test_quarters(at: tuple[int, int, int], start: tuple[int, int, int]) -> None:
    assert next_quarter(datetime(*at, 12, tzinfo=UTC)) == datetime(*start, tzinfo=UTC)


@pytest.mark.parametrize(
    "wrong",
    [{"due_at": "2020-01-01"}, {"reviewer": "nobody"}, {"every": "month"}, {"match": {}}, {"more": 1}],
)
def test_a_body_that_is_none_is_refused(client: ApiClient, tenant: Tenant, wrong: dict[str, Any]) -> None:
    make_agent(tenant)

    assert client.post(PATH, body(**wrong)).status_code == 400


def test_nothing_to_review(client: ApiClient) -> None:
    assert client.post(PATH, body()).status_code == 422
