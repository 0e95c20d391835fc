"""Compose the document of a notification: each field with its value, or with what people have to state."""

from typing import Final

from compliance.core.json_values import Json
from compliance.incidents.vocabulary import NotificationTemplate
from compliance.reports.notifications.record import IncidentRecord
from compliance.reports.notifications.templates import FieldOrigin, FormField, sections_of, source_of
from compliance.reports.notifications.values import moment, value_of

FORMAT: Final = "incident-notification/1"
NOTICE: Final = (
    "A draft, filled from the record of the service. It was not sent to anybody. Check every value; fields "
    "marked 'to state' need what only people know. Compare the form with the Official Journal and with what "
    "the authority asks for before it is sent."
)


def compose(record: IncidentRecord, template: NotificationTemplate, *, version: int) -> Json:
    """Return the document; the same record gives the same one."""
    sections: list[Json] = [
        {"title": section.title, "fields": [_field(field, record, template) for field in section.fields]}
        for section in sections_of(template)
    ]
    fields = [field for section in sections for field in section["fields"]]
    from_record = [field for field in fields if field["from"] == FieldOrigin.RECORD]
    return {
        "format": FORMAT,
        "template": template.value,
        "title": str(template.label),
        "form": source_of(template),
        "notice": NOTICE,
        "version": version,
        "environment": record.environment,
        "incident_id": str(record.incident.id),
        "reference": record.incident.reference,
        "drafted_at": moment(record.gathered_at),
        "sections": sections,
        "filled": {
            "from_record": sum(field["value"] is not None for field in from_record),
            "record_fields": len(from_record),
            "to_state": sum(field["value"] is None for field in fields),
            "fields": len(fields),
        },
    }


def _field(field: FormField, record: IncidentRecord, template: NotificationTemplate) -> Json:
    value = None if field.origin is FieldOrigin.PEOPLE else value_of(field.key, record, template)
    hint = field.hint or "Not on record." if value is None else None
    return {
        "key": field.key,
        "label": field.label,
        "from": field.origin.value,
        "value": value,
        "to_state": hint,
    }
