"""Open reviews of access, decide on their agents and carry the decisions out.

A decision is stored first and carried out later, by the process that claims its row. A change of an agent
commits with the row, or has no effect when repeated.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet

from agents import mailing
from agents import services as agents
from agents.errors import AgentRetired
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates import services as certificates
from certificates.issuing import issuance
from certificates.models import Certificate
from compliance.core import environments
from compliance.core.errors import Busy, Invalid, LimitReached, ServiceError, Unavailable
from compliance.core.json_values import written
from compliance.core.tasks import enqueue_on_commit
from compliance.stores.portions import PATIENCE, JobPhase, Jobs
from compliance.stores.sweeps import each
from delegation.reviews import records
from delegation.reviews.errors import AlreadyDecided, ItemNotFound, NothingToReduce, NothingToReview
from delegation.reviews.facts import facts_of
from delegation.reviews.models import (
    QUARTER,
    AccessReview,
    AccessReviewDecision,
    AccessReviewItem,
    AccessReviewState,
)
from delegation.stops import services as stops
from delegation.token_keys.signed_records import root_of
from webhooks.publishing import publish
from webhooks.vocabulary import EventName

WORK: Final = "reviews.work"
"""The task that carries decisions out."""
AT_ONCE: Final = 10
"""So many decisions are carried out in the request itself."""
NAMED: Final = 10
"""So many agents are named in the mail to a reviewer."""
TRIED_EVERY: Final = timedelta(seconds=90)
"""Longer than the pause between renewals of an agent."""
PASSING: Final = (Unavailable, LimitReached, Busy)
"""Refusals that pass; after any other the item waits for another decision."""
LONGEST: Final = timedelta(days=36_500)
"""The time that a repeated review gives at most; the first one may be due at the end of time."""
SCHEDULER: Final = Actor.system("reviews.sweep")
MONTHS_OF_QUARTER: Final = 3


def open_review(
    *,
    tenant_id: UUID,
    match: Mapping[str, Any],
    reviewer: str,
    due_at: datetime,
    every: str | None,
    actor: Actor,
    now: datetime,
) -> AccessReview:
    """Open a review of the matching agents but retired ones, and mail their owners and the reviewer.

    Raises: AgentNotFound, NothingToReview; Invalid if it is due already.
    """
    if due_at <= now:
        raise Invalid("due_at must be in the future")
    with environments.atomic():
        found = to_review(tenant_id=tenant_id, match=match)
        review = AccessReview.objects.create(
            tenant_id=tenant_id,
            match=match,
            reviewer=reviewer,
            agent_count=len(found),
            due_at=due_at,
            next_at=next_quarter(now) if every else None,
            started_by=actor.id,
            started_by_kind=actor.kind,
            started_at=now,
        )
        own: dict[str, Any] = {"tenant_id": tenant_id, "review": review, "opened_at": now}
        for first in range(0, len(found), 1000):
            items = [AccessReviewItem(agent_id=agent.id, **own) for agent in found[first : first + 1000]]
            AccessReviewItem.objects.bulk_create(items)
        _record(review, AuditAction.ACCESS_REVIEW_OPENED, f"Access review of {review} opened", actor, now)
        publish(tenant_id=tenant_id, name=EventName.ACCESS_REVIEW_OPENED, data=_said(review), now=now)
        text = f"Whether it still needs what it may do is decided until {due_at:%Y-%m-%d %H:%M} UTC."
        mailing.tell_owners(agents=found, what="under review", text=text, now=now)
        _tell_reviewer(review, "opened", now)
    return review


def to_review(*, tenant_id: UUID, match: Mapping[str, Any]) -> list[Agent]:
    """Return the agents that match and are not retired. Raises: AgentNotFound, NothingToReview."""
    own = stops.matching(tenant_id=tenant_id, match=match).exclude(status=AgentStatus.RETIRED)
    found = list(own.only("tenant_id", "name", "owner_email", "backup_owner_email"))
    if not found:
        raise NothingToReview()
    return found


def next_quarter(now: datetime) -> datetime:
    """Return the start of the quarter after the one that holds `now`."""
    month = (now.month - 1) // MONTHS_OF_QUARTER * MONTHS_OF_QUARTER + 1 + MONTHS_OF_QUARTER
    return datetime(now.year + month // 12, month % 12, 1, tzinfo=UTC)


def schedule(
    *, tenant_id: UUID, review_id: Any, every: str | None, actor: Actor, now: datetime
) -> AccessReview:
    """Have a review opened anew each quarter, or no longer. Raises: ReviewNotFound."""
    with environments.atomic():
        review = AccessReview.objects.for_tenant(tenant_id).locked().find(review_id)
        if review.every != every:
            review.next_at = next_quarter(now) if every else None
            review.save(update_fields=["next_at"])
            said = f"Access review {'is repeated each quarter' if every else 'is not repeated'}"
            _record(review, AuditAction.ACCESS_REVIEW_SCHEDULED, said, actor, now)
    return review


def decide(
    *,
    tenant_id: UUID,
    review_id: Any,
    agent_ids: Collection[Any],
    decision: str,
    actions: Sequence[str] | None = None,
    note: str = "",
    leave: bool = False,
    actor: Actor,
    now: datetime,
) -> list[AccessReviewItem]:
    """Commit a decision on agents of a review, and carry out a few at once; return the items.

    `actions`: what `reduce` removes, else exactly the unused. With `leave`, agents that are decided on or
    have nothing to reduce are left as they are. Raises: ReviewNotFound, ItemNotFound, AlreadyDecided (not for
    the same decision), NothingToReduce.
    """
    with environments.atomic():
        review = AccessReview.objects.for_tenant(tenant_id).locked().find(review_id)
        own = items_of(review).filter(agent_id__in=agent_ids).order_by("id")
        items = list(own.select_for_update(of=("self",), no_key=True))
        if len(items) != len(set(agent_ids)):
            raise ItemNotFound()
        due = [item for item in items if not item.is_decided]
        repeated = all(item.decision == decision for item in items if item.is_decided)
        if not leave and (not repeated or (actions is not None and len(due) < len(items))):
            raise AlreadyDecided()
        _store(review, due, decision, actions, note, leave, actor, now)
        are_few = _due(review, now).count() <= AT_ONCE
        if not are_few:
            enqueue_on_commit(WORK, job_id=str(review.id))
    if are_few:
        REVIEWS.work_off(job_id=review.id, now=now)
    return list(own)


def _store(
    review: AccessReview,
    items: Sequence[AccessReviewItem],
    decision: str,
    actions: Sequence[str] | None,
    note: str,
    leave: bool,
    actor: Actor,
    now: datetime,
) -> None:
    """Store and audit a decision on locked items, as `decide`."""
    found = Agent.objects.for_tenant(review.tenant_id).in_bulk([item.agent_id for item in items])
    facts, made, entries = facts_of([*found.values()], now), [], []
    for item in items:
        agent, seen = found[item.agent_id], facts[item.agent_id]
        profile = agent.permitted_actions
        # A reduction that failed at the certificate has taken these from the profile.
        removed = [one for one in item.removed if profile is not None and one not in profile]
        if decision == AccessReviewDecision.REDUCE:
            removable = _removable(agent, seen, actions)
            if not removable and leave:
                continue
            if not removable:
                raise NothingToReduce()
            removed = list(dict.fromkeys([*removed, *removable]))
        item.decision, item.removed, item.note, item.problem = decision, removed, note, ""
        item.seen = {**seen, "owner": None}  # personal data, which an erasure could not reach here
        item.decided_by, item.decided_by_kind, item.decided_at = actor.id, actor.kind, now
        is_kept = decision == AccessReviewDecision.KEEP
        item.applied_at, item.next_try_at = (now, None) if is_kept else (None, now)
        made.append(item)
        told = {"decision": decision, "removed_actions": removed, "note": note}
        entries.append(
            auditlog.entry(
                tenant_id=review.tenant_id,
                action=AuditAction.ACCESS_REVIEW_DECIDED,
                affected_id=agent.id,
                description=f"Access of agent {agent.name} reviewed: {decision}",
                metadata={"review_id": str(review.id), "agent_id": str(agent.id), **told},
                actor=actor,
                now=now,
            )
        )
    columns = ["decision", "removed", "note", "problem", "seen", "decided_by", "decided_by_kind"]
    columns += ["decided_at", "applied_at", "next_try_at"]
    items_of(review).bulk_update(made, columns, batch_size=500)
    auditlog.record_all(entries)


def _removable(agent: Agent, seen: Mapping[str, Any], actions: Sequence[str] | None) -> list[str]:
    """Return the permitted actions that `reduce` removes; none if it can't remove all that are named."""
    permitted = seen["permitted_actions"] or []
    if agent.is_stopped or not {*(actions or ())} <= {*permitted}:
        return []
    wanted = seen["unused"] if actions is None else actions
    return [one for one in permitted if one in wanted]


def _carry_out(review: AccessReview, rows: list[AccessReviewItem], now: datetime) -> int:
    """Carry out the decision on one agent, unless another process has claimed it; return 1 if tried."""
    (item,) = rows
    # Without a problem nobody decides anew meanwhile.
    due = _due(review, now).filter(id=item.id, decided_at=item.decided_at)
    if not due.update(next_try_at=now + PATIENCE, problem=""):
        return 0
    reason = f"Access review {review.id}"
    asked: dict[str, Any] = {"tenant_id": review.tenant_id, "agent_id": item.agent_id}
    by: dict[str, Any] = {"actor": item.actor, "now": now}
    # One that was made anew meanwhile is still to be carried out.
    own = items_of(review).filter(id=item.id, decided_at=item.decided_at, applied_at=None)
    try:
        if item.decision == AccessReviewDecision.REDUCE:
            with suppress(AgentRetired):
                _reduce(item, asked, by)
        with environments.atomic():
            # Locks the row: what another process has done meanwhile is not done again.
            if not own.update(applied_at=now, problem=""):
                return 1
            with suppress(AgentRetired):  # by somebody else
                if item.decision == AccessReviewDecision.SUSPEND:
                    _suspend(asked, f"{reason}: {item.note}" if item.note else reason, by)
                elif item.decision == AccessReviewDecision.RETIRE:
                    # Anyone who verifies the certificate reads this reason; the note is not public.
                    certificates.retire_agent(**asked, reason=reason, **by)
    except ServiceError as error:
        again = now + TRIED_EVERY if isinstance(error, PASSING) else None
        own.update(problem=error.message[:200], next_try_at=again)
    return 1


def _suspend(asked: dict[str, Any], reason: str, by: dict[str, Any]) -> None:
    agent = Agent.objects.for_tenant(asked["tenant_id"]).locked().find(asked["agent_id"])
    if agent.status == AgentStatus.SUSPENDED:
        agents.uphold(agent=agent, reason=reason, **by)
    else:
        certificates.suspend_agent(**asked, reason=reason, **by)


def _give_up(review: AccessReview, row_id: Any, now: datetime) -> int:
    item = items_of(review).filter(id=row_id, applied_at=None)
    return item.update(problem="The service failed at it; see its log", next_try_at=None)


def _reduce(item: AccessReviewItem, asked: dict[str, Any], by: dict[str, Any]) -> None:
    """Take the removed actions from the agent's profile, then from its certificate. Raises: ServiceError."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(item.tenant_id).locked().find(item.agent_id)
        own, seen = agent.permitted_actions, (item.seen or {})["permitted_actions"]
        scope = [one for one in seen if one in (seen if own is None else own) and one not in item.removed]
        if own != scope:
            metadata = {**(agent.metadata or {}), "permitted_actions": scope}
            agents.update(**asked, changes={"metadata": metadata}, reason=item.note, **by)
    own_certificates = Certificate.objects.for_tenant(item.tenant_id).of_agent(agent.id)
    # Of an agent that was suspended since this is refused: a release would bring back what is on hold.
    if own_certificates.revocable(by["now"]).wider_than_profile().exists():
        issuance.renew_of_agent(**asked, **by)


def _finish(review: AccessReview, now: datetime) -> None:
    """End a review of which every decision is carried out, once."""
    with environments.atomic():
        review = AccessReview.objects.locked().get(id=review.id)
        if review.state == AccessReviewState.DONE or items_of(review).filter(applied_at=None).exists():
            return
        lines = records.lines_of(items_of(review))
        review.state, review.ended_at, review.root = AccessReviewState.DONE, now, root_of(lines).hex()
        review.save(update_fields=["state", "ended_at", "root"])
        counts = records.counts_of(lines)
        said = f"Access review done: {', '.join(f'{count} {name}' for name, count in counts.items())}"
        _record(review, AuditAction.ACCESS_REVIEW_DONE, said, SCHEDULER, now, **counts, root=review.root)


def sweep(*, now: datetime) -> int:
    """Go on with decisions, escalate overdue reviews, open those of a new quarter; return how many."""
    overdue = AccessReview.objects.overdue(now).filter(overdue_at=None).values_list("id", flat=True)
    repeated = AccessReview.objects.filter(next_at__lte=now).values_list("id", flat=True)
    told = each(overdue, partial(_escalate, now=now)) + each(repeated, partial(_repeat, now=now))
    return REVIEWS.sweep(now=now) + told


def _escalate(review_id: UUID, *, now: datetime) -> int:
    with environments.atomic():
        review = AccessReview.objects.overdue(now).locked().filter(id=review_id, overdue_at=None).first()
        if review is None:
            return 0
        review.overdue_at = now
        review.save(update_fields=["overdue_at"])
        said = f"Access review of {review} is overdue"
        _record(review, AuditAction.ACCESS_REVIEW_OVERDUE, said, SCHEDULER, now)
        data, overdue = _said(review), EventName.ACCESS_REVIEW_OVERDUE
        publish(tenant_id=review.tenant_id, name=overdue, data=data, now=now)
        _tell_reviewer(review, "overdue", now)
    return 1


def _repeat(review_id: UUID, *, now: datetime) -> int:
    """Open the review of a new quarter with as much time as the last one had."""
    with environments.atomic():
        review = AccessReview.objects.locked().filter(id=review_id, next_at__lte=now).first()
        if review is None:
            return 0
        review.next_at = None
        try:
            open_review(
                tenant_id=review.tenant_id,
                match=review.match,
                reviewer=review.reviewer,
                due_at=now + min(review.due_at - review.started_at, LONGEST),
                every=QUARTER,
                actor=SCHEDULER,
                now=now,
            )
        except NothingToReview:  # but perhaps in a quarter's time
            review.next_at = next_quarter(now)
            said = "Access review not repeated: no agent matches; tried again next quarter"
            _record(review, AuditAction.ACCESS_REVIEW_SCHEDULED, said, SCHEDULER, now)
            text = "No agent matches that is not retired. It is tried again next quarter."
            _tell_reviewer(review, "not repeated", now, text)
        review.save(update_fields=["next_at"])
    return 1


def replace_person(
    *, tenant_id: UUID, email: str, name: str, new_email: str, actor: Actor, now: datetime
) -> int:
    """As `agents.replace_owner`, and in reviews that name the person, as reviewer or as the owner to match.

    A new reviewer of an open one is mailed. Finished ones are changed too: what is signed names nobody.
    """
    with environments.atomic():
        asked: dict[str, Any] = {"tenant_id": tenant_id, "email": email, "actor": actor, "now": now}
        count = agents.replace_owner(**asked, name=name, new_email=new_email)
        named = Q(reviewer__iexact=email) | Q(match__owner__iexact=email)
        for review in AccessReview.objects.for_tenant(tenant_id).filter(named).order_by("id").locked():
            before = {"reviewer": review.reviewer, "match": review.match}
            if "owner" in review.match and review.match["owner"].casefold() == email.casefold():
                review.match = {"owner": new_email}
            is_reviewer = review.reviewer.casefold() == email.casefold()
            if is_reviewer:
                review.reviewer = new_email
            if before == {"reviewer": review.reviewer, "match": review.match}:
                continue
            review.save(update_fields=["reviewer", "match"])
            said = f"Access review of {review}: a person was replaced"
            _record(review, AuditAction.ACCESS_REVIEW_UPDATED, said, actor, now, before=before)
            if is_reviewer and review.state == AccessReviewState.OPEN:
                _tell_reviewer(review, "handed over", now)
    return count


def items_of(review: AccessReview) -> QuerySet[AccessReviewItem]:
    """Return the rows of a review's agents."""
    return AccessReviewItem.objects.filter(review=review, tenant_id=review.tenant_id)


def _due(review: AccessReview, now: datetime) -> QuerySet[AccessReviewItem]:
    own = items_of(review).filter(next_try_at__lte=now, applied_at=None)
    return own.order_by("next_try_at", "id")  # one that is tried again comes after the others


def _tell_reviewer(review: AccessReview, what: str, now: datetime, text: str = "") -> None:
    text = text or f"Decide on each agent until {review.due_at:%Y-%m-%d %H:%M} UTC."
    found = Agent.objects.for_tenant(review.tenant_id).filter(
        id__in=items_of(review).order_by("decision", "id").values("agent_id")[:NAMED]
    )
    mailing.tell(
        to=[review.reviewer],
        agents=list(found),
        subject=f"Access review {what}: {review}",
        text=f"{text}\n\nReview: {review.id}",
        role="the reviewer",
        now=now,
    )


def _said(review: AccessReview) -> dict[str, Any]:
    due_at, agent_count = written(review.due_at), review.agent_count
    return {"review_id": str(review.id), "reviewer": review.reviewer, "agents": agent_count, "due_at": due_at}


def _record(
    review: AccessReview, action: AuditAction, description: str, actor: Actor, now: datetime, **more: Any
) -> None:
    auditlog.record(
        tenant_id=review.tenant_id,
        action=action,
        affected_id=review.id,
        description=description,
        metadata={**_said(review), "match": review.match, "every": review.every, **more},
        actor=actor,
        now=now,
    )


PHASES: Final = (JobPhase(_due, _carry_out, 1, _give_up, alone=True),)
REVIEWS: Final = Jobs(AccessReview, WORK, lambda _: PHASES, _finish)
