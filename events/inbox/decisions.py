"""What a form of the inbox may ask for, and the service that does it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, QueryDict

from agents.models import Agent
from auditlog.actors.requests import actor_of
from auditlog.vocabulary import Actor
from compliance.console.display import visible
from compliance.core.errors import Invalid, ServiceError
from compliance.core.identifiers import parse_id
from compliance.core.wording import counted
from events.inbox import reading, services
from events.inbox.forms import SNOOZES, DecisionForm
from events.inbox.people import reviewers_of
from events.models import ReviewVerdict

MOST_AT_ONCE = reading.WINDOW


@dataclass(frozen=True)
class InboxCall:
    """A valid form: the agent and the event that the page showed, what was typed, and the time."""

    request: HttpRequest
    agent: Agent
    event_id: UUID | None
    form: DecisionForm
    now: datetime

    @property
    def actor(self) -> Actor:
        return actor_of(self.request)

    @property
    def note(self) -> str:
        return str(self.form.cleaned_data["note"])

    def common(self) -> dict[str, Any]:
        """Return the arguments that every service takes."""
        return {"tenant_id": self.agent.tenant_id, "actor": self.actor, "now": self.now}

    def about(self) -> dict[str, Any]:
        """Return the arguments of the services that keep a comment."""
        case_number = self.form.case
        return {
            **self.common(),
            "agent_id": self.agent.id,
            "event_id": self.event_id,
            "case_number": case_number,
        }


@dataclass(frozen=True)
class Told:
    """The message about what was done."""

    text: str
    level: int = messages.SUCCESS


@dataclass(frozen=True)
class InboxAct:
    """Something the inbox does.

    `closes`: the next event is shown afterwards. `needs_note`: the error if there is no note. `is_reason`:
    the note becomes the reason of a stop.
    """

    run: Callable[[InboxCall], Told]
    closes: bool = False
    needs_note: str = ""
    is_reason: bool = False


def read(given: QueryDict) -> tuple[InboxAct | None, DecisionForm]:
    """Return what the form asks for, None if the inbox has no such act, and the form itself."""
    act = ACTS.get(given.get("act", ""))
    if act is None:
        return None, DecisionForm()
    return act, DecisionForm(given, needs_note=act.needs_note, is_reason=act.is_reason)


def _decide(call: InboxCall, verdict: ReviewVerdict) -> Told:
    if call.event_id is None:
        raise Invalid("Choose an event first.")
    made = services.decide(
        **call.common(),
        event_id=call.event_id,
        verdict=verdict,
        note=call.note or None,
        case_number=call.form.case,
    )
    if verdict == ReviewVerdict.DISMISSED:
        return Told("Dismissed: to its agent the event is ordinary from now on.")
    marked = f"{len(made.marked)} marked for the tenant" if made.marked else "nothing is marked"
    return Told(f"Confirmed as an attack; {marked}.")


def _decide_ticked(call: InboxCall, verdict: ReviewVerdict) -> Told:
    """Review each ticked event on its own, so that one that cannot be reviewed does not stop the others."""
    ids = [found for text in call.request.POST.getlist("ticked") if (found := parse_id(text))]
    if not ids:
        raise Invalid("Tick the events first.")
    if len(ids) > MOST_AT_ONCE:
        raise Invalid(f"At most {MOST_AT_ONCE} events at once.")
    said = {**call.common(), "note": call.note or None, "case_number": call.form.case}
    failed = []
    for event_id in dict.fromkeys(ids):
        try:
            services.decide(**said, event_id=event_id, verdict=verdict)
        except ServiceError as error:
            failed.append(error.message)
    done = len(set(ids)) - len(failed)
    text = f"{counted(done, 'event')} {verdict}."
    if failed:
        return Told(f"{text} Left as they were: {len(failed)} ({failed[0]}).", messages.WARNING)
    return Told(text)


def _confirm(call: InboxCall) -> Told:
    return _decide(call, ReviewVerdict.CONFIRMED)


def _dismiss(call: InboxCall) -> Told:
    return _decide(call, ReviewVerdict.DISMISSED)


def _confirm_ticked(call: InboxCall) -> Told:
    return _decide_ticked(call, ReviewVerdict.CONFIRMED)


def _dismiss_ticked(call: InboxCall) -> Told:
    return _decide_ticked(call, ReviewVerdict.DISMISSED)


def _suspend(call: InboxCall) -> Told:
    agent = services.suspend(**call.about(), reason=call.note)
    return Told(f"{visible(agent)} is suspended. The event still waits for a verdict.")


def _revoke(call: InboxCall) -> Told:
    certificate = services.revoke(**call.about(), reason=call.note)
    return Told(f"Certificate {certificate.serial_number} is revoked. The event still waits for a verdict.")


def _comment(call: InboxCall) -> Told:
    services.comment(**call.about(), text=call.note)
    return Told("Comment added.")


def _assign(call: InboxCall) -> Told:
    chosen = call.request.POST.get("assignee", "")
    offered = reviewers_of(call.request, call.agent.tenant_id)
    if chosen and chosen not in {person.actor_id for person in offered}:
        raise Invalid("Only officers of the tenant review its events.")
    services.assign(**call.common(), agent_id=call.agent.id, assignee=chosen or None)
    return Told("Assigned." if chosen else "Assigned to nobody.")


def _snooze(call: InboxCall) -> Told:
    chosen = call.request.POST.get("span", "")
    if chosen and chosen not in SNOOZES:
        raise Invalid("Choose how long to snooze.")
    words, span = SNOOZES.get(chosen, ("", None))
    services.snooze(**call.common(), agent_id=call.agent.id, span=span)
    return Told(f"Snoozed {words}, or until the next high-risk event." if span else "No longer snoozed.")


ACTS = {
    "confirm": InboxAct(_confirm, closes=True),
    "dismiss": InboxAct(_dismiss, closes=True),
    "confirm_ticked": InboxAct(_confirm_ticked, closes=True),
    "dismiss_ticked": InboxAct(_dismiss_ticked, closes=True),
    "suspend": InboxAct(_suspend, needs_note="Say in the note why the agent is suspended.", is_reason=True),
    "revoke": InboxAct(_revoke, needs_note="Say in the note why the certificate is revoked.", is_reason=True),
    "comment": InboxAct(_comment, needs_note="Write the comment into the note."),
    "assign": InboxAct(_assign),
    "snooze": InboxAct(_snooze),
}
