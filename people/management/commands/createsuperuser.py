"""Django's `createsuperuser`, audited."""

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.contrib.auth.models import User
from django.contrib.postgres.functions import TransactionNow

from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from people import recording


class Command(createsuperuser.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with environments.use(Environment.LIVE), environments.atomic():
            known = set(User.objects.values_list("pk", flat=True))
            super().handle(*args, **options)
            # A person's row has the time of its transaction: users that others make meanwhile are theirs.
            for user in User.objects.filter(person__created_at=TransactionNow()).exclude(pk__in=known):
                recording.record_created(user=user, actor=Actor.system("createsuperuser"), now=now())
