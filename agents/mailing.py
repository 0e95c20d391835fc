"""Mail to the owners of agents: queued with the change that it tells of, sent by a task, then deleted.

A message is sent again if the process that sends it dies before it deletes the row; a sweep finds those of
lost tasks, and of times when the mail server was away.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.core import mail

from agents.models import Agent, OwnerMail
from compliance.core import environments
from compliance.core.encryption import decrypt, encrypt
from compliance.core.plain_text import HIDDEN
from compliance.stores import sweeps, wakeups

log = logging.getLogger(__name__)

SEND: Final = "agents.send_mails"
SENT_AT_ONCE: Final = 200
TRIED_EVERY: Final = timedelta(minutes=5)
"""Longer than a message may take: meanwhile no other task sends it."""
GIVEN_UP_AFTER: Final = timedelta(days=1)
FOOTER: Final = """
{agents}Environment: {environment}

You get this because {service} names you as {role}.
"""


def tell_owners(*, agents: Iterable[Agent], what: str, text: str, now: datetime) -> None:
    """Queue a message that agents are `what` to owner and backup owner: one for all that are theirs."""
    of_owners: defaultdict[tuple[str, ...], list[Agent]] = defaultdict(list)
    for agent in agents:
        people = dict.fromkeys(filter(None, (agent.owner_email, agent.backup_owner_email)))
        of_owners[tuple(people)].append(agent)
    for to, own in of_owners.items():
        subject = f"Agent {own[0].name} is {what}" if len(own) == 1 else f"{len(own)} agents are {what}"
        tell(to=to, agents=own, subject=subject, text=text, now=now)


def tell(
    *,
    to: Sequence[str],
    agents: Sequence[Agent],
    subject: str,
    text: str,
    role: str = "an owner",
    now: datetime,
) -> bool:
    """Queue a message about agents of one tenant to these addresses, in the caller's transaction.

    Returns whether it did: not without a mail server (`EMAIL_HOST`), or to nobody.
    """
    if not settings.EMAIL_HOST or not to:
        return False
    footer = FOOTER.format(
        agents="".join(f"Agent: {line(agent.name)}\nID: {agent.id}\n" for agent in agents),
        environment=environments.current().value,
        service=settings.SERVICE_TITLE,
        role=role,
    )
    letter = msgspec.json.encode((line(subject), f"{text}\n{footer}", to))
    OwnerMail.objects.create(
        tenant_id=agents[0].tenant_id,
        sealed=encrypt(letter),  # it names people, and may hold a link
        created_at=now,
        next_attempt_at=now,
    )
    environments.on_commit(lambda: wakeups.ask_for(SEND))
    return True


def line(text: str) -> str:
    """Return a text on one line, without the hidden characters by which it could pose as another."""
    return " ".join(HIDDEN.sub(" ", text).split())


def send_due(*, now: datetime) -> int:
    """Send what is due; return how many were sent. Drops what could not be sent for `GIVEN_UP_AFTER`."""
    dropped, _ = OwnerMail.objects.filter(created_at__lte=now - GIVEN_UP_AFTER).delete()
    if dropped:
        log.warning("%d messages to owners could not be sent and are dropped", dropped)
    due = OwnerMail.objects.filter(next_attempt_at__lte=now).order_by("next_attempt_at", "id")
    found = list(due.values_list("id", flat=True)[:SENT_AT_ONCE])
    return sweeps.each(found, lambda one: _send(one, now))


def _send(mail_id: UUID, now: datetime) -> int:
    due = OwnerMail.objects.filter(id=mail_id, next_attempt_at__lte=now)
    if not due.update(next_attempt_at=now + TRIED_EVERY):  # of two tasks one takes it
        return 0
    row = OwnerMail.objects.get(id=mail_id)
    subject, text, to = msgspec.json.decode(decrypt(bytes(row.sealed)))
    try:
        mail.send_mail(subject, text, None, to)
    except OSError as error:  # smtplib's errors are
        log.warning("mail %s to an owner was not sent: %s", mail_id, type(error).__name__)
        return 0
    row.delete()
    return 1
