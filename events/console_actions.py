"""What officers make of events in the console."""

from django import forms
from unfold.widgets import UnfoldAdminTextareaWidget

from auditlog.vocabulary import Actor
from compliance.console import ActionCall, ConfirmedAction
from events import reviewing
from events.models import ReviewVerdict


class NoteForm(forms.Form):
    """What an officer has to say of it, if anything."""

    note = forms.CharField(
        max_length=1000,
        required=False,
        help_text="Kept beside your name with the review and in the audit log; at most 1000 characters.",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "autofocus": True}),
    )


def _review(call: ActionCall, verdict: ReviewVerdict) -> list[str]:
    made, _ = reviewing.review(
        tenant_id=call.row.tenant_id,
        event_id=call.row.id,
        verdict=verdict,
        note=call.data["note"] or None,
        actor=Actor.console_user(call.username),
        now=call.now,
    )
    return list(made.marked)


def confirm(call: ActionCall) -> str:
    marked = _review(call, ReviewVerdict.CONFIRMED)
    if not marked:
        return "The event is confirmed. It names no place that could be marked."
    return f"The event is confirmed, and where it went is marked for the tenant: {len(marked)}."


def dismiss(call: ActionCall) -> str:
    _review(call, ReviewVerdict.DISMISSED)
    return "The event is dismissed: to its agent it is ordinary from now on."


CONFIRM = ConfirmedAction(
    name="confirm",
    label="Confirm as attack",
    icon="gpp_bad",
    explanation=(
        "The event was part of an attack. Where it went is marked: whichever agent of the tenant names such "
        "a place again scores high, and three such events within minutes stop it. Dismissing the event lifts "
        "the marks. The agent itself goes on: suspend it, or revoke its certificate, on its own page."
    ),
    run=confirm,
    is_offered=lambda event: event.said != ReviewVerdict.CONFIRMED,
    form_class=NoteForm,
    is_destructive=True,
)
DISMISS = ConfirmedAction(
    name="dismiss",
    label="Dismiss",
    icon="verified_user",
    explanation=(
        "The event was ordinary after all. Its agent learns it, so that the like of it scores lower, and "
        "what a confirmation of it marked is lifted. Its score stays, and the strikes that it counted for."
    ),
    run=dismiss,
    is_offered=lambda event: event.said != ReviewVerdict.DISMISSED,
    form_class=NoteForm,
)
