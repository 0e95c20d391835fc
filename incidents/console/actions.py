"""Actions of officers on an incident's page."""

from functools import partial
from typing import Any

from auditlog.actors.requests import user_of
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.display import visible
from incidents import merging, services
from incidents.console.forms import (
    SENT_FIELDS,
    AssessForm,
    AttachForm,
    MergeForm,
    OptionalNoteForm,
    SentForm,
    TimelineNoteForm,
)
from incidents.duties.clocks import ClockKind
from incidents.errors import IncidentNotFound
from incidents.models import Incident
from incidents.vocabulary import IncidentState


def _update(
    call: ActionCall, changes: dict[str, Any], *, note: str = "", attachment: dict[str, Any] | None = None
) -> Incident:
    return services.update(
        incident_id=call.row.id,
        changes=changes,
        note=note,
        attachment=attachment,
        **user_of(call.request, call.row),
    )


def _assess(call: ActionCall) -> str:
    stated = {name: value for name, value in call.data.items() if name != "note" and value}
    incident = _update(call, stated, note=call.data["note"])
    return f"{incident.reference} is assessed; its clocks run by what you stated."


def _sent(call: ActionCall) -> str:
    kind = ClockKind(call.data["report"])
    _update(call, {SENT_FIELDS[kind]: call.data["sent_at"] or call.now}, note=call.data["note"])
    return f"{kind.label}: sent."


def _note(call: ActionCall) -> str:
    _update(call, {}, note=call.data["note"])
    return "The note is in the timeline."


def _attach(call: ActionCall) -> str:
    _update(call, {}, attachment=call.data)
    return f"{visible(call.data['name'])} is attached by its digest; keep the file."


def _move(call: ActionCall, state: IncidentState) -> str:
    return f"{_update(call, {'state': state}, note=call.data['note']).reference} is {state}."


def _merge(call: ActionCall) -> str:
    into = call.data["into"].strip()
    if into.upper().startswith("INC-"):
        of_tenant = Incident.objects.for_tenant(call.row.tenant_id).ongoing().with_reference(into)
        found = [row for row in of_tenant.order_by("-opened_at", "-id") if row.reference == into.upper()]
        if len(found) != 1:
            raise IncidentNotFound()
        into = str(found[0].id)
    ended = merging.merge(
        incident_id=call.row.id, into=into, note=call.data["note"], **user_of(call.request, call.row)
    )
    return f"{ended.reference} goes on in {ended.merged_into}."


ASSESS = ConfirmedAction(
    name="assess",
    label="Assess",
    icon="rule",
    explanation=(
        "States what only people know: how bad it is, who owns it, whether it is serious under the AI Act or "
        "major under DORA, and since when you know. The clocks are computed anew. What you leave empty stays "
        "as it is."
    ),
    run=_assess,
    is_offered=lambda incident: not incident.has_ended,
    form_class=AssessForm,
)
SENT = ConfirmedAction(
    name="sent",
    label="Report sent",
    icon="outgoing_mail",
    explanation="States that a report went to its authority, and stops its clock. The service sends none.",
    run=_sent,
    is_offered=lambda incident: not incident.has_ended,
    form_class=SentForm,
)
NOTE = ConfirmedAction(
    name="note",
    label="Add note",
    icon="edit_note",
    explanation="Adds a note to the timeline. It cannot be changed afterwards.",
    run=_note,
    form_class=TimelineNoteForm,
)
ATTACH = ConfirmedAction(
    name="attach",
    label="Attach by digest",
    icon="attach_file",
    explanation=(
        "Puts a file's name, size and SHA-256 into the timeline, which prove later that it is the same file. "
        "The file itself is not sent: keep it."
    ),
    run=_attach,
    form_class=AttachForm,
)
CONTAIN = ConfirmedAction(
    name="contain",
    label="Contained",
    icon="shield",
    explanation="States that the agent does no further harm. Revoking its certificate states it by itself.",
    run=partial(_move, state=IncidentState.CONTAINED),
    is_offered=lambda incident: incident.state == IncidentState.OPEN,
    form_class=OptionalNoteForm,
)
CLOSE = ConfirmedAction(
    name="close",
    label="Close incident",
    icon="task_alt",
    explanation=(
        "Ends the incident for good; notes and attachments can still be added. It takes that no clock is "
        "open: state when each report was sent, or that its duty does not apply."
    ),
    run=partial(_move, state=IncidentState.CLOSED),
    is_offered=lambda incident: not incident.has_ended,
    form_class=OptionalNoteForm,
)
MERGE = ConfirmedAction(
    name="merge",
    label="Merge into another",
    icon="merge",
    explanation=(
        "States that this incident and another are one attack. The other goes on with the agents, the "
        "certificates and the earlier detection of both; this one ends, with a link to it. It is final."
    ),
    run=_merge,
    is_offered=lambda incident: not incident.has_ended,
    form_class=MergeForm,
)
ACTIONS = (ASSESS, SENT, NOTE, ATTACH, CONTAIN, MERGE, CLOSE)
