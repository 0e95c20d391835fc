"""`sign_in_link USERNAME --reason TEXT`: the way in for operators while the identity provider is away."""

from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import User
from django.urls import reverse

from auditlog.vocabulary import Actor
from compliance.core.commands import ServiceCommand
from compliance.core.errors import NotFound
from people.doors import links


class Command(ServiceCommand):
    help = "Print a link that signs an operator in once, with the second factor."
    arguments: ClassVar = {
        "username": {},
        "--reason": {"required": True, "help": "why; kept in the audit log"},
    }

    def run(self, *, now: datetime, **options: Any) -> str:
        user = User.objects.filter(
            username=options["username"], is_superuser=True, is_staff=True, is_active=True
        ).first()
        if user is None:
            raise NotFound("There is no active operator of this name")
        actor = Actor.system("sign_in_link")
        token, link = links.make(user=user, signs_in=True, reason=options["reason"], actor=actor, now=now)
        address = f"{settings.BASE_URL}{reverse('admin:link', args=[token])}"
        return f"{address}\nIt works once, until {link.expires_at:%Y-%m-%d %H:%M} UTC."
