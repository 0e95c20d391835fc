"""Kept answers of idempotent requests are not kept for longer than they are promised to be."""

from datetime import timedelta

from compliance.api.idempotency import RETENTION
from compliance.api.models import IdempotencyRecord
from compliance.api.tasks import forget_answers
from compliance.core.clock import now
from compliance.core.identifiers import new_id


def make_record(age: timedelta) -> IdempotencyRecord:
    return IdempotencyRecord.objects.create(
        tenant_id=new_id(), key="key", fingerprint="f", created_at=now() - age
    )


def test_answers_are_forgotten_after_their_retention() -> None:
    make_record(RETENTION + timedelta(minutes=1))
    kept = make_record(RETENTION - timedelta(minutes=1))

    forget_answers.run()

    assert list(IdempotencyRecord.objects.all()) == [kept]
