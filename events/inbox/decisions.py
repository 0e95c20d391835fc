"""Decisions that a form of the inbox may ask for, and the service of each."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest
from django.utils.html import format_html

from agents.models import Agent
from auditlog.actors.requests import actor_of
from compliance.console.display import row_link, visible
from compliance.core.errors import Invalid, ServiceError
from compliance.core.identifiers import parse_id
from compliance.core.wording import counted
from events.inbox import services
from events.inbox.forms import LONGEST_NOTE, LONGEST_REASON, SNOOZES, reviewers_of
from events.inbox.models import CommentKind
from events.inbox.reading import WINDOW
from events.inbox.reviewing import review
from events.models import BehaviorEvent, ReviewVerdict


@dataclass(frozen=True)
class InboxCall:
    """A valid form: the agent and the event that the page showed, what was typed, and the time."""

    request: HttpRequest
    agent: Agent
    event_id: UUID | None
    note: str
    case_number: str | None
    now: datetime

    def common(self) -> dict[str, Any]:
        """Return the arguments that every service takes."""
        return {"tenant_id": self.agent.tenant_id, "actor": actor_of(self.request), "now": self.now}

    def review(self, event_id: UUID, verdict: ReviewVerdict) -> list[str]:
        """Review an event that is still open; return the places that it marked."""
        made, _ = review(
            **self.common(),
            event_id=event_id,
            verdict=verdict,
            note=self.note or None,
            case_number=self.case_number,
            must_be_open=True,
        )
        return list(made.marked)


@dataclass(frozen=True)
class InboxAct:
    """Something the inbox does; `run` returns what is said about it.

    `closes`: the next event is shown afterwards. `needs_note`: the error without a note.
    """

    run: Callable[[InboxCall], str]
    closes: bool = False
    needs_note: str = ""
    longest_note: int = LONGEST_NOTE


def _decide(call: InboxCall, verdict: ReviewVerdict) -> str:
    if call.event_id is None:
        raise Invalid("Choose an event first.")
    marked = call.review(call.event_id, verdict)
    event = BehaviorEvent.objects.get(id=call.event_id)
    named = f"{event.action_type} {event.risk_score:.2f} of {visible(call.agent.name)}"
    if verdict == ReviewVerdict.DISMISSED:
        text = f"Dismissed: {named}, ordinary to its agent from now on."
    else:
        effect = f"{len(marked)} marked for the tenant" if marked else "nothing is marked"
        text = f"Confirmed as an attack: {named}; {effect}."
    return format_html("{} {}", text, row_link("Change the verdict", "events_behaviorevent", event.id))


def _decide_ticked(call: InboxCall, verdict: ReviewVerdict) -> str:
    """Review each ticked event on its own, so that one that cannot be reviewed does not stop the others."""
    texts = ",".join(call.request.POST.getlist("ticked")).split(",")
    ids = dict.fromkeys(found for text in texts if (found := parse_id(text)))
    if not ids:
        raise Invalid("Tick the events first.")
    if len(ids) > WINDOW:
        raise Invalid(f"At most {WINDOW} events at once.")
    failed = []
    for event_id in ids:
        try:
            call.review(event_id, verdict)
        except ServiceError as error:
            failed.append(error.message)
    if failed:
        messages.warning(call.request, f"Left as they were: {len(failed)} ({failed[0]}).")
    return f"{counted(len(ids) - len(failed), 'event')} {verdict}."


def _remark(call: InboxCall, kind: CommentKind) -> str:
    about: dict[str, Any] = {"agent_id": call.agent.id, "event_id": call.event_id}
    about |= {"text": call.note, "case_number": call.case_number}
    revoked = services.remark(**call.common(), kind=kind, **about)
    if kind == CommentKind.COMMENT:
        return "Comment added."
    done = (
        f"Certificate {revoked.serial_number} is revoked"
        if revoked
        else f"{visible(call.agent)} is suspended"
    )
    return f"{done}. The event still waits for a verdict."


def _assign(call: InboxCall) -> str:
    chosen = call.request.POST.get("assignee", "")
    offered = reviewers_of(call.request, call.agent.tenant_id)
    if chosen and chosen not in offered:
        raise Invalid("Only officers of the tenant review its events.")
    services.assign(**call.common(), agent_id=call.agent.id, assignee=chosen or None)
    return "Assigned." if chosen else "Assigned to nobody."


def _snooze(call: InboxCall) -> str:
    chosen = call.request.POST.get("span", "")
    if chosen and chosen not in SNOOZES:
        raise Invalid("Choose how long to snooze.")
    words, span = SNOOZES.get(chosen, ("", None))
    services.snooze(**call.common(), agent_id=call.agent.id, span=span)
    return f"Snoozed {words}, or until the next high-risk event." if span else "No longer snoozed."


ACTS = {
    "confirm": InboxAct(partial(_decide, verdict=ReviewVerdict.CONFIRMED), closes=True),
    "dismiss": InboxAct(partial(_decide, verdict=ReviewVerdict.DISMISSED), closes=True),
    "confirm_ticked": InboxAct(partial(_decide_ticked, verdict=ReviewVerdict.CONFIRMED), closes=True),
    "dismiss_ticked": InboxAct(partial(_decide_ticked, verdict=ReviewVerdict.DISMISSED), closes=True),
    "suspend": InboxAct(
        partial(_remark, kind=CommentKind.SUSPENDED),
        needs_note="Say in the note why the agent is suspended.",
        longest_note=LONGEST_REASON,
    ),
    "revoke": InboxAct(
        partial(_remark, kind=CommentKind.REVOKED),
        needs_note="Say in the note why the certificate is revoked.",
        longest_note=LONGEST_REASON,
    ),
    "comment": InboxAct(
        partial(_remark, kind=CommentKind.COMMENT), needs_note="Write the comment into the note."
    ),
    "assign": InboxAct(_assign),
    "snooze": InboxAct(_snooze),
}
