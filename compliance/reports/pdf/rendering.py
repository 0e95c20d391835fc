"""A report's document as PDF; the same document gives the same bytes."""

from compliance.core.json_values import Json
from compliance.reports.pdf.frame import draw
from compliance.reports.pdf.sections import story
from compliance.reports.pdf.styles import fonts


def render(document: Json, *, digest: str, fingerprint: str) -> bytes:
    """Return the PDF; `digest` is that of the JSON, `fingerprint` of the key that signs the manifest."""
    fonts()
    title = f"{document['regulation']['name']} evidence report"
    parts = story(document, title, digest=digest, fingerprint=fingerprint)
    return draw(parts, title=title, subject=document["report_id"], digest=digest)
