"""Signed records of finished reviews: compact JWS by the token keys, over the Merkle root of the decisions.

They name nobody: actors by id, and no addresses. The audit entry of the end, which has the same root, names
reviewer and owner where that can be erased.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from compliance.core.json_values import written
from delegation.reviews.models import AccessReview, AccessReviewDecision, ReviewUnfinished
from delegation.token_keys.signed_records import ensure_signed

TYPE: Final = "access-review+jwt"


def lines_of(review: AccessReview) -> list[dict[str, Any]]:
    """Return a line for each agent of a review, in the order of the tree's leaves."""
    return [
        {
            "agent_id": str(item.agent_id),
            "decision": item.decision,
            "removed_actions": item.removed,
            "decided_by": item.decided_by,
            "decided_at": written(item.decided_at),
            "applied_at": written(item.applied_at),
        }
        for item in review.rows.order_by("id").defer("seen")
    ]


def counts_of(lines: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    found = Counter(line["decision"] for line in lines)
    return {decision: found[decision] for decision in AccessReviewDecision.values}


def record_of(review: AccessReview, *, now: datetime) -> tuple[str, list[dict[str, Any]]]:
    """Return a review's signed record and its lines. Raises: ReviewUnfinished, and 503 errors."""
    if review.ended_at is None:
        raise ReviewUnfinished()
    lines = lines_of(review)
    claims = {
        "review_id": str(review.id),
        "match": {"owner": None} if "owner" in review.match else review.match,
        "due_at": written(review.due_at),
        "count": review.agent_count,
        **counts_of(lines),
    }
    return ensure_signed(review, "record", claims, typ=TYPE, now=now), lines
