"""`second_factor_reset USERNAME --reason TEXT`: for operators who have lost app, keys and recovery codes."""

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.models import User

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from compliance.core.errors import NotFound
from people.doors import factors


class Command(ServiceCommand):
    help = "Remove a user's authenticator app, security keys and recovery codes."
    arguments: ClassVar = {
        "username": {},
        "--reason": {"required": True, "help": "why; kept in the audit log"},
    }

    def run(self, *, now: datetime, **options: Any) -> str:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise NotFound("User not found")
        actor = Actor.system("second_factor_reset")
        factors.remove(user=user, reason=options["reason"], actor=actor, now=now)
        return f"{user.username} has no second factor any more."
