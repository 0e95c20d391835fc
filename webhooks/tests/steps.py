"""The sender's steps one by one, at moments that a test chooses."""

from datetime import datetime

from webhooks import claims, results
from webhooks.claims import Room
from webhooks.delivering import Parcel, Report, send
from webhooks.models import Attempt, Delivery
from webhooks.sender import Outcome


def claim(at: datetime, total: int = 100) -> list[Parcel]:
    """All that may be sent at this moment, and be it from senders that died."""
    claims.tidy(now=at)
    return claims.claim(room=Room.for_any(total), now=at)


def claimed(delivery: Delivery, at: datetime) -> Parcel:
    """The parcel of `delivery`, which must be the one whose turn it is."""
    (parcel,) = claim(at, total=1)
    assert parcel.delivery_id == delivery.id
    return parcel


def settle(parcel: Parcel, outcome: Outcome, ended_at: datetime) -> bool:
    """Whether the result counted."""
    attempt = Attempt.objects.filter(delivery_id=parcel.delivery_id, number=parcel.number)
    was_open = attempt.filter(duration_ms=None).exists()
    assert results.settle([Report(parcel, outcome, ended_at)], now=ended_at) == []
    return was_open and not attempt.filter(duration_ms=None).exists()


def deliver(at: datetime) -> list[Outcome]:
    """Claim, send and write down, one after the other."""
    outcomes = []
    for parcel in claim(at):
        outcome = send(parcel=parcel)
        settle(parcel, outcome, at + outcome.duration)
        outcomes.append(outcome)
    return outcomes
