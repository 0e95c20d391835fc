"""Open reviews of access, decide on their agents and carry the decisions out.

A decision is stored first and carried out later, by the process that claims its row. A change of an agent
commits with the row, or has no effect when repeated.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet

from agents import mailing, services as agents
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
from compliance.stores.portions import PATIENCE, JobPhase, Jobs
from compliance.stores.sweeps import each
from delegation.reviews import records
from delegation.reviews.facts import facts_of
from delegation.reviews.models import (
    QUARTER,
    AccessReview,
    AccessReviewDecision,
    AccessReviewItem,
    AccessReviewQuerySet,
    AccessReviewState,
    AlreadyDecided,
    ItemNotFound,
    NothingToReduce,
    NothingToReview,
)
from delegation.stops import services as stops
from delegation.token_keys.signed_records import root_of
from webhooks.publishing import publish
from webhooks.vocabulary import EventName

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
        of_review: dict[str, Any] = {"tenant_id": tenant_id, "review": review, "opened_at": now}
        items = [AccessReviewItem(agent_id=agent.id, **of_review) for agent in found]
        AccessReviewItem.objects.bulk_create(items, batch_size=10_000)
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
        own = review.rows.filter(agent_id__in=agent_ids).order_by("id")
        items = list(own.select_for_update(of=("self",), no_key=True))
        if len(items) != len(set(agent_ids)):
            raise ItemNotFound()
        due = [item for item in items if not item.is_decided]
        repeated = all(item.decision == decision for item in items if item.is_decided)
        if not leave and (not repeated or (actions is not None and len(due) < len(items))):
            raise AlreadyDecided()
        made = _weigh(review, due, decision, actions, now)
        if not leave and len(made) < len(due):
            raise NothingToReduce()
        review.rows.bulk_update(made, ["removed", "seen"], batch_size=500)
        is_kept = decision == AccessReviewDecision.KEEP
        review.rows.filter(id__in=[item.id for item in made]).update(
            decision=decision,
            note=note,
            problem="",
            decided_by=actor.id,
            decided_by_kind=actor.kind,
            decided_at=now,
            applied_at=now if is_kept else None,
            next_try_at=None if is_kept else now,
        )
        told = {"review_id": str(review.id), "decision": decision, "note": note}
        entries = [
            auditlog.entry(
                tenant_id=tenant_id,
                action=AuditAction.ACCESS_REVIEW_DECIDED,
                affected_id=item.agent_id,
                description=f"Access of agent {(item.seen or {})['name']} reviewed: {decision}",
                metadata={**told, "agent_id": str(item.agent_id), "removed_actions": item.removed},
                actor=actor,
                now=now,
            )
            for item in made
        ]
        auditlog.record_all(entries)
    REVIEWS.start(review, _due(review, now).count(), now)
    return list(own)


def _weigh(
    review: AccessReview,
    items: Sequence[AccessReviewItem],
    decision: str,
    actions: Sequence[str] | None,
    now: datetime,
) -> list[AccessReviewItem]:
    """Fill in what is seen of locked items' agents now, and what a decision removes.

    Returns the items but those with nothing to reduce, or not all of the named `actions`.
    """
    found = Agent.objects.for_tenant(review.tenant_id).in_bulk([item.agent_id for item in items])
    facts, weighed = facts_of([*found.values()], now), []
    for item in items:
        agent, seen = found[item.agent_id], facts[item.agent_id]
        profile, permitted = agent.permitted_actions, seen["permitted_actions"] or []
        # A reduction that failed at the certificate has taken these from the profile.
        removed = [one for one in item.removed if profile is not None and one not in profile]
        if decision == AccessReviewDecision.REDUCE:
            wanted = seen["unused"] if actions is None else actions
            removable = [one for one in permitted if one in wanted]
            if not removable or agent.is_stopped or not {*(actions or ())} <= {*permitted}:
                continue
            uncertified = [one for one in profile or () if one not in permitted]
            removed = list(dict.fromkeys([*removed, *removable, *uncertified]))
        item.removed = removed
        item.seen = {**seen, "owner": None}  # personal data, which an erasure could not reach here
        weighed.append(item)
    return weighed


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
    own = review.rows.filter(id=item.id, decided_at=item.decided_at, applied_at=None)
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
    item = review.rows.filter(id=row_id, applied_at=None)
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
        if review.state == AccessReviewState.DONE or review.rows.filter(applied_at=None).exists():
            return
        lines = records.lines_of(review)
        review.state, review.ended_at, review.root = AccessReviewState.DONE, now, root_of(lines).hex()
        review.save(update_fields=["state", "ended_at", "root"])
        counts = records.counts_of(lines)
        said = f"Access review done: {', '.join(f'{count} {name}' for name, count in counts.items())}"
        _record(review, AuditAction.ACCESS_REVIEW_DONE, said, SCHEDULER, now, **counts, root=review.root)


def sweep(*, now: datetime) -> int:
    """Go on with decisions, escalate overdue reviews, open those of a new quarter; return how many."""
    overdue = AccessReview.objects.overdue(now).filter(overdue_at=None)
    repeated = AccessReview.objects.filter(next_at__lte=now)
    return _each(overdue, _escalate, now) + _each(repeated, _repeat, now) + REVIEWS.sweep(now=now)


def _each(due: AccessReviewQuerySet, work: Callable[[AccessReview, datetime], None], now: datetime) -> int:
    def work_locked(review_id: UUID) -> bool:
        with environments.atomic():
            review = due.locked().filter(id=review_id).first()
            if review is not None:
                work(review, now)
        return review is not None

    return each(due.values_list("id", flat=True), work_locked)


def _escalate(review: AccessReview, now: datetime) -> None:
    review.overdue_at = now
    review.save(update_fields=["overdue_at"])
    said = f"Access review of {review} is overdue"
    _record(review, AuditAction.ACCESS_REVIEW_OVERDUE, said, SCHEDULER, now)
    data, overdue = _said(review), EventName.ACCESS_REVIEW_OVERDUE
    publish(tenant_id=review.tenant_id, name=overdue, data=data, now=now)
    _tell_reviewer(review, "overdue", now)


def _repeat(review: AccessReview, now: datetime) -> None:
    """Open the review of a new quarter with as much time as the last one had."""
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
            is_reviewer = review.reviewer.casefold() == email.casefold()
            if is_reviewer:
                review.reviewer = new_email
            if review.match.get("owner", "").casefold() == email.casefold():
                review.match = {"owner": new_email}
            if before == {"reviewer": review.reviewer, "match": review.match}:
                continue
            review.save(update_fields=["reviewer", "match"])
            said = f"Access review of {review}: a person was replaced"
            _record(review, AuditAction.ACCESS_REVIEW_UPDATED, said, actor, now, before=before)
            if is_reviewer and review.state == AccessReviewState.OPEN:
                _tell_reviewer(review, "handed over", now)
    return count


def _due(review: AccessReview, now: datetime) -> QuerySet[AccessReviewItem]:
    own = review.rows.filter(next_try_at__lte=now, applied_at=None)
    return own.order_by("next_try_at", "id")  # one that is tried again comes after the others


def _tell_reviewer(review: AccessReview, what: str, now: datetime, text: str = "") -> None:
    text = text or f"Decide on each agent until {review.due_at:%Y-%m-%d %H:%M} UTC."
    found = Agent.objects.for_tenant(review.tenant_id).filter(
        id__in=review.rows.order_by("decision", "id").values("agent_id")[:NAMED]
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
    metadata = {**_said(review), "match": review.match, "every": review.every, **more}
    auditlog.record(
        of=review, action=action, description=description, metadata=metadata, actor=actor, now=now
    )


PHASES: Final = (JobPhase(_due, _carry_out, 1, _give_up, alone=True),)
REVIEWS: Final = Jobs(AccessReview, "reviews.work", 10, lambda _: PHASES, _finish)
