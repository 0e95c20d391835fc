"""Django's `changepassword`, audited."""

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.contrib.auth.models import User

from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from people import recording


class Command(changepassword.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        with environments.use(Environment.LIVE):
            user = User.objects.filter(username=options["username"] or getpass.getuser()).first()
            if user is None:
                return super().handle(*args, **options)
            actor = Actor.system("changepassword")
            with recording.recorded_changes(user_id=user.pk, actor=actor, now=now()):
                return super().handle(*args, **options)
