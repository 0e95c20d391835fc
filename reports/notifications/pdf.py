"""A draft as PDF: each field with its number; what people have to state is marked."""

from collections.abc import Iterator
from datetime import datetime

from compliance.core.json_values import Json
from reports.pdf.drawing import draw


def render(document: Json, *, digest: str) -> bytes:
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
