"""The page of an incident with its drafts: made by officers, read by everyone of the tenant."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

import orjson
from django import forms
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html_join
from unfold.widgets import UnfoldAdminSelectWidget

from auditlog.actors.names import actor_shown, names_of
from auditlog.actors.requests import actor_of, record_taken, user_of
from auditlog.vocabulary import AuditAction
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.display import EMPTY, code, column, link, moment
from compliance.core.clock import now
from compliance.core.json_values import Json
from incidents.admin import IncidentAdmin
from incidents.console.shown import wide_table
from reports.notifications import services
from reports.pdf.drawing import draw
from reports.vocabulary import NotificationTemplate

MOST_SHOWN = 50


class DraftForm(forms.Form):
    template = forms.ChoiceField(
        label="Form", choices=NotificationTemplate.choices, widget=UnfoldAdminSelectWidget
    )


def _draft(call: ActionCall) -> str:
    made = services.draft(
        incident_id=call.row.id,
        template=NotificationTemplate(call.data["template"]),
        **user_of(call.request, call.row),
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


def _link(page: str, label: str, *keys: object) -> str:
    return link(label, reverse(f"admin:incidents_incident_{page}", args=keys))


def _drafts(incident: Any) -> str:
    found = list(incident.drafts.defer("document").order_by("-created_at", "-id")[:MOST_SHOWN])
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
    head = ("Form", "Version", "Made", "By", "Download", "SHA-256 of the JSON")
    return wide_table(head, rows) if rows else EMPTY


def _download(body: bytes, name: str, kind: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(body, content_type=f"application/{kind}", headers=headers)


class DraftingIncidentAdmin(IncidentAdmin):
    """Incidents with their drafts and the export of the whole record."""

    confirmed_actions: ClassVar = (
        *IncidentAdmin.confirmed_actions[:2],
        DRAFT,
        *IncidentAdmin.confirmed_actions[2:],
    )
    fieldsets: ClassVar[Any] = (
        *IncidentAdmin.fieldsets[:2],
        ("Drafts of notifications", {"fields": ("drafts", "whole_record")}),
        *IncidentAdmin.fieldsets[2:],
    )
    drafts = column("drafts", _drafts)
    whole_record = column("whole record", lambda row: _link("export", "JSON", row.pk))

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        drafts = [
            path(
                f"<path:object_id>/drafts/<uuid:draft_id>.{kind}",
                wrap(self.draft_view),
                {"kind": kind},
                name=f"incidents_incident_draft_{kind}",
            )
            for kind in ("pdf", "json")
        ]
        export = path(
            "<path:object_id>/export.json", wrap(self.export_view), name="incidents_incident_export"
        )
        return [*drafts, export, *super().get_urls()]

    def draft_view(self, request: HttpRequest, object_id: str, draft_id: UUID, kind: str) -> HttpResponse:
        incident = self.get_object(request, unquote(object_id))
        draft = None if incident is None else incident.drafts.filter(id=draft_id).first()
        if incident is None or draft is None:
            return self.missing(request, object_id)
        record_taken(
            actor=actor_of(request),
            action=AuditAction.NOTIFICATION_DOWNLOADED,
            of=incident,
            description=f"{draft} of incident {incident.reference} downloaded as {kind.upper()}",
            sha256=draft.digest,
            format=kind,
        )
        body = as_pdf(draft.content, digest=draft.digest) if kind == "pdf" else draft.document.encode()
        return _download(body, f"{incident.reference}-{draft.template}-{draft.version}.{kind}", kind)

    def export_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        incident = self.get_object(request, unquote(object_id))
        if incident is None:
            return self.missing(request, object_id)
        record_taken(
            actor=actor_of(request),
            action=AuditAction.INCIDENT_EXPORTED,
            of=incident,
            description=f"Incident {incident.reference} exported",
        )
        body = orjson.dumps(services.export(incident, now=now()), option=orjson.OPT_INDENT_2)
        return _download(body, f"{incident.reference}.json", "json")


def as_pdf(document: Json, *, digest: str) -> bytes:
    """Return the PDF of a frozen draft; the footer of each page shows the digest of its JSON."""
    title = f"{document['title']}, {document['reference']}"
    made_at = datetime.fromisoformat(document["drafted_at"])
    subject = document["incident_id"]
    return draw(list(_blocks(document)), title=title, subject=subject, digest=digest, made_at=made_at)


def _blocks(document: Json) -> Iterator[Json]:
    filled = document["filled"]
    yield {"kind": "note", "text": document["notice"]}
    yield {
        "kind": "text",
        "text": (
            f"{document['reference']}, version {document['version']}, drafted {document['drafted_at']}, "
            f"environment {document['environment']}. Form: {document['form']}. Filled from the record: "
            f"{filled['from_record']} of {filled['record_fields']} fields; to state: {filled['to_state']}."
        ),
    }
    for section in document["sections"]:
        yield {"kind": "heading", "text": section["title"]}
        for field in section["fields"]:
            yield {"kind": "label", "text": f"{field['key']} {field['label']}"}
            if field["value"] is None:
                yield {"kind": "to_state", "text": f"To state: {field['to_state']}"}
            else:
                yield {"kind": "text", "text": field["value"]}
