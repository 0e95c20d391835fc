"""Wrong codes and security keys at the second step, counted for each person."""

from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User

from compliance.people.models import Person, SecondStepTries

FREE_FAILURES: Final = 3
LONGEST_CLOSURE: Final = timedelta(minutes=15)


def lock(user: User) -> SecondStepTries:
    """Lock the person's row until the transaction ends, so that their tries come one after the other."""
    person = Person.objects.get(user=user)
    SecondStepTries.objects.bulk_create([SecondStepTries(person=person)], ignore_conflicts=True)
    return SecondStepTries.objects.select_for_update(of=("self",)).get(person=person)


def is_closed(found: SecondStepTries, now: datetime) -> bool:
    return found.closed_until is not None and now < found.closed_until


def closed_for(user: User, now: datetime) -> timedelta | None:
    """Return for how long nothing of the user is accepted."""
    found = SecondStepTries.objects.filter(person__user=user, closed_until__gt=now).first()
    return None if found is None or found.closed_until is None else found.closed_until - now


def count(found: SecondStepTries, *, was_right: bool, now: datetime) -> None:
    """Count a try. From the third wrong one in a row on, each closes the door for twice as long."""
    found.failures = 0 if was_right else found.failures + 1
    found.closed_until = None
    if found.failures >= FREE_FAILURES:
        found.closed_until = now + min(timedelta(seconds=2 ** min(found.failures, 20)), LONGEST_CLOSURE)
    found.save(update_fields=["failures", "closed_until"])
