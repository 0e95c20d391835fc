"""What decisions leave behind: a reduction that failed halfway, a decision under way, the public reason."""

from typing import Any

import pytest

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from certificates.issuing import issuance
from certificates.models import Certificate
from certificates.tests.factories import reinstate_agent
from compliance.core.clock import now
from compliance.core.errors import Unavailable
from compliance.stores.portions import PATIENCE
from delegation.reviews import records, services
from delegation.reviews.models import AccessReviewItem, AlreadyDecided
from delegation.reviews.tests.factories import decide, make_scoped_agent, open_review
from delegation.stops.tests.factories import make_stop, release_stop
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR


def away(**_: Any) -> None:
    raise Unavailable()


@pytest.mark.parametrize(
    ("anew", "removed", "profile"),
    [
        ({"decision": "keep"}, ["refund"], ["place_order", "delete_account"]),
        (
            {"decision": "reduce", "actions": ["delete_account"]},
            ["refund", "delete_account"],
            ["place_order"],
        ),
    ],
)
def test_a_decision_after_half_a_reduction_tells_what_was_removed(
    tenant: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    anew: dict[str, Any],
    removed: list[str],
    profile: list[str],
) -> None:
    agent, review = make_scoped_agent(tenant), open_review(tenant)
    with monkeypatch.context() as patch:
        patch.setattr(issuance, "renew_of_agent", away)
        decide(review, "reduce", agent, actions=["refund"])

    decide(review, anew.pop("decision"), agent, **anew)

    agent.refresh_from_db()
    review.refresh_from_db()
    _, (line,) = records.record_of(review, now=now())
    assert (line["removed_actions"], agent.permitted_actions) == (removed, profile)


def test_a_decision_that_is_being_carried_out_again_is_not_made_anew(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, review = make_scoped_agent(tenant), open_review(tenant)
    monkeypatch.setattr(issuance, "renew_of_agent", away)
    decide(review, "reduce", agent)
    refused = []

    def is_decided_meanwhile(**_: Any) -> None:
        with pytest.raises(AlreadyDecided) as error:
            decide(review, "keep", agent)
        refused.append(error)

    monkeypatch.setattr(issuance, "renew_of_agent", is_decided_meanwhile)
    services.REVIEWS.work_off(job_id=review.id, now=now() + services.TRIED_EVERY)

    review.refresh_from_db()
    assert (len(refused), review.state) == (1, "done")


def test_a_decision_made_anew_before_the_claim_is_the_one_that_is_carried_out(tenant: Tenant) -> None:
    agent, review = make_scoped_agent(tenant), open_review(tenant)
    items = AccessReviewItem.objects.filter(review=review)
    items.update(decision="suspend", decided_at=now(), next_try_at=now())
    read = list(items)
    items.update(decision="retire", decided_at=now(), next_try_at=now())

    (phase,) = services.PHASES
    tried = phase.work(review, read, now())

    agent.refresh_from_db()
    assert (tried, agent.status) == (0, "active")


def test_a_process_that_stalled_does_not_repeat_what_another_has_carried_out(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, review = make_scoped_agent(tenant), open_review(tenant)
    items = AccessReviewItem.objects.filter(review=review)
    by = {"decided_by": ACTOR.id, "decided_by_kind": ACTOR.kind, "decided_at": now()}
    items.update(decision="suspend", next_try_at=now(), **by)

    def stall(_: AccessReviewItem) -> Actor:
        """Between the claim and the effect the claim ends, and the agent is reinstated after it."""
        patch.undo()
        services.REVIEWS.work_off(job_id=review.id, now=now() + PATIENCE)
        reinstate_agent(agent)
        return ACTOR

    with monkeypatch.context() as patch:
        patch.setattr(AccessReviewItem, "actor", property(stall))
        (phase,) = services.PHASES
        phase.work(review, list(items), now())

    agent.refresh_from_db()
    review.refresh_from_db()
    assert (agent.status, review.state) == ("active", "done")
    assert AuditEntry.objects.of_type("agent.suspended").about(agent.id).count() == 1


def test_the_release_of_a_stop_leaves_what_a_review_suspended(tenant: Tenant) -> None:
    agent, other = make_scoped_agent(tenant), make_scoped_agent(tenant)
    review, stop = open_review(tenant), make_stop(tenant)
    decide(review, "suspend", agent)

    release_stop(stop)

    assert dict(Agent.objects.values_list("id", "status")) == {agent.id: "suspended", other.id: "active"}
    assert dict(stop.agents.values_list("agent_id", "release")) == {agent.id: "kept", other.id: "released"}
    entry = AuditEntry.objects.of_type("agent.suspended").about(agent.id).latest("created_at")
    assert (entry.metadata or {})["reason"] == f"Access review {review.id}"


def test_the_note_of_a_retirement_is_not_public(tenant: Tenant) -> None:
    agent, review = make_scoped_agent(tenant), open_review(tenant)

    decide(review, "retire", agent, note="Kim left")

    certificate = Certificate.objects.latest_of(agent)
    entry = AuditEntry.objects.of_type("access_review.decided").get(tenant_id=tenant.id)
    assert certificate is not None
    assert certificate.revocation_reason == f"Agent retired: Access review {review.id}"
    assert (entry.metadata or {})["note"] == "Kim left"


def test_a_decision_that_is_tried_again_comes_after_the_others(tenant: Tenant) -> None:
    for _ in range(2):
        make_scoped_agent(tenant)
    review = open_review(tenant)
    again, other = items = list(AccessReviewItem.objects.filter(review=review).order_by("id"))
    for item, tried_at in zip(items, (now(), now() - services.TRIED_EVERY), strict=True):
        AccessReviewItem.objects.filter(id=item.id).update(
            decision="suspend", decided_by_kind=ACTOR.kind, decided_at=now(), next_try_at=tried_at
        )

    services.REVIEWS.advance(job_id=review.id, now=now())

    again.refresh_from_db()
    other.refresh_from_db()
    assert (again.applied_at, other.applied_at is None) == (None, False)
