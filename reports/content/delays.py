"""Reviews and stops of high-risk events: the verdicts, and how long people and the service took."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db.models import OuterRef, Subquery

from auditlog.querysets import AuditEntryQuerySet
from auditlog.vocabulary import ActorKind, AuditAction
from compliance.core.identifiers import parse_id
from events.models import BehaviorEvent, EventReview
from events.querysets import BehaviorEventQuerySet
from reports.content.facts import Spread

_OF_THE_EVENT = {"event_id": OuterRef("pk"), "tenant_id": OuterRef("tenant_id")}
"""Of reviews, those of the event of the query around."""


def with_reviews(high_risk: BehaviorEventQuerySet) -> Any:
    """Annotate events with `said`, the verdict that counts, and `first_review_at`."""
    first = EventReview.objects.filter(**_OF_THE_EVENT, number=1).values("reviewed_at")[:1]
    return high_risk.with_verdict(EventReview.objects.all()).annotate(first_review_at=Subquery(first))


def reviews(high_risk: BehaviorEventQuerySet) -> dict[str, Any]:
    """Return the facts of the events' reviews: the last verdicts, whose they are, and how long they took."""
    last = EventReview.objects.filter(**_OF_THE_EVENT).order_by("-number").values("actor_id")[:1]
    reviewed = with_reviews(high_risk).annotate(said_by=Subquery(last)).exclude(said=None).order_by()
    rows = list(reviewed.values_list("said", "said_by", "received_at", "first_review_at"))
    key = f"{ActorKind.API_KEY}:"
    kinds = (ActorKind.API_KEY if actor.startswith(key) else ActorKind.PERSON for _, actor, *_ in rows)
    return {
        "verdicts": dict(Counter(said for said, *_ in rows)),
        "verdicts_by": dict(Counter(kinds)),
        "review_delays": spread((start, end) for *_, start, end in rows),
    }


def stop_delays(entries: AuditEntryQuerySet) -> Spread | None:
    """Return the times from the receipt of the last strike to the stop, where the event is stored."""
    stops = entries.of_type(AuditAction.AGENT_HIGH_RISK).values_list("metadata__event_id", "created_at")
    stopped = {parse_id(str(event_id)): at for event_id, at in stops}
    strikes = BehaviorEvent.objects.filter(id__in=[key for key in stopped if key])
    received = strikes.order_by().values_list("id", "received_at")
    return spread((at, stopped[event_id]) for event_id, at in received)


def spread(spans: Iterable[tuple[datetime, datetime]]) -> Spread | None:
    """Return the median and the longest of (start, end) spans; None without spans."""
    seconds = [max(end - start, timedelta()).total_seconds() for start, end in spans]
    if not seconds:
        return None
    return Spread(len(seconds), timedelta(seconds=median(seconds)), timedelta(seconds=max(seconds)))
