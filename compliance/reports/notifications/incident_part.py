"""The part of an incident's page with its drafts: made by officers, read by everyone of the tenant."""

from functools import partial
from uuid import UUID

import orjson
from django import forms
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from unfold.widgets import UnfoldAdminSelectWidget

from auditlog.actors.names import actor_shown, names_of
from auditlog.actors.requests import actor_of, record_download
from auditlog.vocabulary import AuditAction
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.display import EMPTY, code, column, moment
from compliance.core.clock import now
from compliance.incidents.console.parts import IncidentFile, IncidentPart
from compliance.incidents.console.shown import once, table
from compliance.incidents.models import Incident, NotificationDraft
from compliance.incidents.vocabulary import NotificationTemplate
from compliance.reports.notifications import pdf, services
from compliance.reports.notifications.export import export

MOST_SHOWN = 50


class DraftForm(forms.Form):
    template = forms.ChoiceField(
        label="Form", choices=NotificationTemplate.choices, widget=UnfoldAdminSelectWidget
    )


def _draft(call: ActionCall) -> str:
    made = services.draft(
        tenant_id=call.row.tenant_id,
        incident_id=call.row.id,
        template=NotificationTemplate(call.data["template"]),
        actor=actor_of(call.request),
        now=call.now,
    )
    filled = made.content["filled"]
    return f"{made}: {filled['from_record']} fields filled from the record, {filled['to_state']} to state."


DRAFT = ConfirmedAction(
    name="draft",
    label="Draft notification",
    icon="draft",
    explanation=(
        "Fills an official form from the record and freezes it as a version with a digest. What only people "
        "know is marked. The service sends it to nobody: check and complete it, send it, and state that "
        'with "Report sent".'
    ),
    run=_draft,
    form_class=DraftForm,
)


def _download(body: bytes, name: str, kind: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(body, content_type=f"application/{kind}", headers=headers)


@once
def _drafts(incident: Incident) -> str:
    newest = NotificationDraft.objects.of_incident(incident.pk).defer("document")
    found = list(newest.order_by("-created_at", "-id")[:MOST_SHOWN])
    names = names_of(draft.actor_id for draft in found)
    rows = [
        (
            draft.get_template_display(),
            draft.version,
            moment(draft.created_at),
            actor_shown(draft.actor_id, names.get(draft.actor_id), is_short=True),
            format_html_join(
                " · ",
                "{}",
                ((_link(f"draft_{kind}", kind.upper(), incident.pk, draft.pk),) for kind in ("pdf", "json")),
            ),
            code(draft.digest),
        )
        for draft in found
    ]
    return (
        table(("Form", "Version", "Made", "By", "Download", "SHA-256 of the JSON"), rows) if rows else EMPTY
    )


def _link(page: str, label: str, *keys: object) -> str:
    address = reverse(f"admin:incidents_incident_{page}", args=keys)
    return format_html('<a class="text-link" href="{}">{}</a>', address, label)


def _draft_file(request: HttpRequest, incident: Incident, draft_id: UUID, *, kind: str) -> HttpResponse:
    draft = NotificationDraft.objects.of_incident(incident.pk).find(draft_id)
    record_download(
        request,
        action=AuditAction.NOTIFICATION_DOWNLOADED,
        tenant_id=incident.tenant_id,
        affected_id=incident.pk,
        description=f"{draft} of incident {incident.reference} downloaded as {kind.upper()}",
        sha256=draft.digest,
        format=kind,
    )
    body = pdf.render(draft.content, digest=draft.digest) if kind == "pdf" else draft.document.encode()
    return _download(body, f"{incident.reference}-{draft.template}-{draft.version}.{kind}", kind)


def _export_file(request: HttpRequest, incident: Incident) -> HttpResponse:
    record_download(
        request,
        action=AuditAction.INCIDENT_EXPORTED,
        tenant_id=incident.tenant_id,
        affected_id=incident.pk,
        description=f"Incident {incident.reference} exported",
    )
    body = orjson.dumps(export(incident, now=now()), option=orjson.OPT_INDENT_2)
    return _download(body, f"{incident.reference}.json", "json")


PART = IncidentPart(
    title="Drafts of notifications",
    columns={
        "drafts": column("drafts", _drafts),
        "whole_record": column("whole record", lambda row: _link("export", "JSON", row.pk)),
    },
    action=DRAFT,
    files=(
        *(
            IncidentFile(f"draft_{kind}", f"drafts/<uuid:draft_id>.{kind}", partial(_draft_file, kind=kind))
            for kind in ("pdf", "json")
        ),
        IncidentFile("export", "export.json", _export_file),
    ),
)
