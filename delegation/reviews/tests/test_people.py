"""Reviewers and owners: replaced when somebody leaves, and named nowhere that an erasure does not reach."""

import json
from typing import Any

import pytest
from joserfc import jwk, jws
from joserfc.util import urlsafe_b64decode

from agents.models import Agent, OwnerMail
from agents.tests.factories import make_agent
from auditlog.disposal import erasing
from auditlog.models import AuditEntry
from auditlog.tests.factories import seal_and_sign
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from delegation.reviews import services
from delegation.reviews.models import AccessReview
from delegation.reviews.services import next_quarter
from delegation.reviews.tests.factories import decide, make_scoped_agent, open_review
from delegation.token_keys.signed_records import root_of
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_tenant

KIM, LEE = "kim.berg@example.com", {"name": "Lee Sand", "email": "lee@example.com"}
OWNED = {"owner_name": "Kim Berg", "owner_email": KIM}


def replace(client: ApiClient) -> Any:
    return client.post("/v1/owners/replace", {"from": KIM.upper(), "to": LEE})


def named_by(review: AccessReview) -> tuple[str, Any]:
    review.refresh_from_db()
    return review.reviewer, review.match


def claims_of(client: ApiClient, record: str) -> dict[str, Any]:
    """The claims of a record whose signature is verified."""
    keys = jwk.KeySet.import_key_set(client.get("/.well-known/jwks.json").json())
    kid = json.loads(urlsafe_b64decode(record.split(".", maxsplit=1)[0].encode()))["kid"]
    token = jws.deserialize_compact(record, keys.get_by_kid(kid), algorithms=["ES256"])
    claims: dict[str, Any] = json.loads(token.payload)
    return claims


def test_who_is_replaced_by_themselves_is_not_said_to_be(
    client: ApiClient, tenant: Tenant, settings: Any
) -> None:
    settings.EMAIL_HOST = "mail.example"
    agent, review = make_agent(tenant, **OWNED), open_review(tenant, reviewer=KIM)
    mails = OwnerMail.objects.count()

    same = client.post("/v1/owners/replace", {"from": KIM, "to": {"name": "Kim Berg", "email": KIM}})

    assert same.json() == {"data": {"agents": 0}}
    assert OwnerMail.objects.count() == mails
    for row, action in ((agent, "agent.updated"), (review, "access_review.updated")):
        assert not AuditEntry.objects.of_type(action).about(row.id).exists()


def test_who_leaves_is_replaced_in_reviews_too(client: ApiClient, tenant: Tenant, settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example"
    agent, foreign = make_agent(tenant, **OWNED), make_tenant()
    make_agent(foreign, **OWNED)
    by_owner = open_review(tenant, match={"owner": KIM}, reviewer="ann@example.com", every="quarter")
    by_reviewer = open_review(tenant, reviewer=KIM)
    theirs = open_review(foreign, match={"owner": KIM}, reviewer=KIM)
    mails = OwnerMail.objects.count()

    assert replace(client).json() == {"data": {"agents": 1}}

    assert named_by(by_owner) == ("ann@example.com", {"owner": LEE["email"]})
    assert named_by(by_reviewer) == (LEE["email"], {"all": True})
    assert named_by(theirs) == (KIM, {"owner": KIM})
    assert OwnerMail.objects.count() == mails + 1  # the new reviewer
    told = AuditEntry.objects.of_type("access_review.updated").for_tenant(tenant.id)
    assert {entry.affected_id for entry in told} == {str(by_owner.id), str(by_reviewer.id)}
    assert all("@" not in str(entry.description) for entry in told)
    services.sweep(now=next_quarter(now()))
    anew = AccessReview.objects.for_tenant(tenant.id).exclude(id__in=[by_owner.id, by_reviewer.id]).get()
    assert (anew.match, anew.agent_count, anew.agents.get().agent_id) == (by_owner.match, 1, agent.id)


def test_a_repeated_review_without_agents_is_told_to_the_reviewer_and_the_log(
    tenant: Tenant, settings: Any
) -> None:
    settings.EMAIL_HOST = "mail.example"
    agent = make_agent(tenant, **OWNED)
    review = open_review(tenant, match={"owner": KIM}, every="quarter")
    Agent.objects.filter(id=agent.id).update(owner_name=None, owner_email=None)
    mails, moment = OwnerMail.objects.count(), next_quarter(now())

    services.sweep(now=moment)

    review.refresh_from_db()
    assert review.next_at == next_quarter(moment)
    entry = AuditEntry.objects.about(review.id).of_type("access_review.scheduled").get()
    assert "no agent matches" in str(entry.description)
    assert OwnerMail.objects.filter(created_at=moment).count() == 2  # overdue, and not repeated
    assert OwnerMail.objects.count() == mails + 2


@pytest.mark.usefixtures("committed")
def test_a_record_names_nobody_and_verifies_after_an_erasure(client: ApiClient, tenant: Tenant) -> None:
    agent = make_scoped_agent(tenant, **OWNED)
    review = open_review(tenant, match={"owner": KIM}, reviewer=KIM)
    decide(review, "reduce", agent)
    path = f"/v1/access-reviews/{review.id}/record"
    before = client.get(path).json()["data"]

    replace(client)
    seal_and_sign()
    for entry in AuditEntry.objects.about(review.id):
        erasing.erase(entry_id=entry.id, reason="asked for", actor=ACTOR, now=now())

    after = client.get(path).json()["data"]
    claims = claims_of(client, after["record"])
    assert after == before
    assert claims["root"] == root_of(after["lines"]).hex()
    assert claims["match"] == {"owner": None}
    kept = [claims, after["lines"], *AccessReview.objects.filter(id=review.id).values("match", "reviewer")]
    kept += list(AuditEntry.objects.for_tenant(tenant.id).about(review.id).values("metadata", "description"))
    kept += list(review.agents.values("seen", "note"))
    assert KIM not in json.dumps(kept, default=str)
