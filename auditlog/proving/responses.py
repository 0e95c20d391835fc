"""The proof file as an HTTP answer, the same for the API and the console."""

from collections.abc import Iterable

from django.http import HttpResponse, StreamingHttpResponse

from auditlog.exporting.formats import FORMATS
from auditlog.tlog.proof_file import ProofFile

TEXT = "text/plain; charset=utf-8"
PRIVATE = "private, no-cache"


def proof_file(found: ProofFile, entry_id: object) -> HttpResponse:
    """Return the proof as a file to store."""
    name = f'attachment; filename="{entry_id}.tlog-proof"'
    headers = {"Cache-Control": PRIVATE, "Content-Disposition": name}
    return HttpResponse(found.encode(), content_type=TEXT, headers=headers)


def export_file(export: Iterable[bytes], name: str) -> StreamingHttpResponse:
    """Return an export in the format `name`, sent as it is made."""
    disposition = f'attachment; filename="audit-log.{name}"'
    headers = {"Cache-Control": "private, no-store", "Content-Disposition": disposition}
    return StreamingHttpResponse(export, content_type=FORMATS[name].media_type, headers=headers)
