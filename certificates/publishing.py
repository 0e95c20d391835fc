"""Serving a published document over HTTP: validators, 304, HEAD, and how long others may keep it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import http_date
from rest_framework.request import Request

MAX_AGE_SECONDS: Final = 10
"""Short, so that a revocation is seen within seconds; with the ETag, asking again costs next to nothing."""


@dataclass(frozen=True)
class Document:
    """A document as it stands now; `etag` without quotes, `modified` in UTC.

    `body` is asked for only when it is sent: a list may be large, and most callers have it already.
    """

    body: Callable[[], bytes]
    size: int
    content_type: str
    etag: str
    modified: datetime
    filename: str


def serve(request: Request, document: Document) -> HttpResponse:
    """200 with the document, or 304 when the caller has it already (RFC 9110 §13)."""
    response = HttpResponse(content_type=document.content_type)
    etag = f'"{document.etag}"'
    response["ETag"] = etag
    response["Last-Modified"] = http_date(document.modified.timestamp())
    response["Cache-Control"] = f"public, max-age={MAX_AGE_SECONDS}, must-revalidate"
    response["Vary"] = "Accept"
    response["Content-Disposition"] = f'inline; filename="{document.filename}"'
    response["X-Content-Type-Options"] = "nosniff"
    conditional = get_conditional_response(
        request._request, etag, int(document.modified.timestamp()), response
    )
    if conditional is not None and conditional is not response:
        return conditional
    if request.method == "HEAD":
        response["Content-Length"] = str(document.size)
    else:
        response.content = document.body()
    return response
