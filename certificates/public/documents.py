"""Published documents over HTTP: content negotiation, validators, 304 and HEAD."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import http_date
from rest_framework.request import Request

JSON, TEXT, PEM_FILE = "application/json", "text/plain", "application/x-pem-file"
MAX_AGE_SECONDS: Final = 10
"""Short, so that a revocation shows within seconds; a repeated request with the ETag is cheap."""
CACHEABLE: Final = f"public, max-age={MAX_AGE_SECONDS}, must-revalidate"


def serve(
    request: Request,
    *,
    body: Callable[[], bytes],
    size: int,
    name: str,
    version: str = "",
    modified: datetime,
    kind: str,
    suffix: str,
    is_pem: bool,
) -> HttpResponse:
    """200 with the document `name`, or 304 when the caller has it already (RFC 9110 §13).

    `body` is called only if its `size` octets are sent. `version` distinguishes documents of one name. `kind`
    and `suffix` are the media type and the file name suffix of the DER form.
    """
    form = "pem" if is_pem else "der"
    response = HttpResponse(content_type=f"{TEXT}; charset=utf-8" if is_pem else kind)
    etag, changed = f'"{name}{version}-{form}"', modified.timestamp()
    response["ETag"] = etag
    response["Last-Modified"] = http_date(changed)
    response["Cache-Control"] = CACHEABLE
    response["Vary"] = "Accept"
    response["Content-Disposition"] = f'inline; filename="{name}.{"pem" if is_pem else suffix}"'
    response["X-Content-Type-Options"] = "nosniff"
    conditional = get_conditional_response(request, etag, int(changed), response)
    if conditional is not None and conditional is not response:
        return conditional
    if request.method == "HEAD":
        response["Content-Length"] = str(size)
    else:
        response.content = body()
    return response


def chosen_form(request: Request, forms: Mapping[str, str], *, default: str) -> str:
    """The form, by media type, that `Accept` prefers; the default if it names none of them."""
    for accepted in request.accepted_types:
        wanted = f"{accepted.main_type}/{accepted.sub_type}"
        if wanted in forms:
            return forms[wanted]
        if wanted in ("*/*", "application/*"):
            return default
        if wanted == "text/*":
            return forms[TEXT]
    return default
