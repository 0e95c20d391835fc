"""Responses of the API outside Django's request cycle: whole, in the envelope, with the same headers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings

from compliance.api.gate import security_headers
from compliance.api.rest.renderers import dumps

Headers = list[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """A response, whole."""

    status: int
    headers: Headers
    body: bytes


def json_answer(status: int, body: Any, headers: Mapping[str, str], *, secure: bool) -> Answer:
    """A JSON response with `headers` beside the security headers; `secure`: to an HTTPS client."""
    more = [(name.lower(), value) for name, value in headers.items()]
    return Answer(status, [*security_headers(secure=secure), *more], dumps(body))


@cache
def service_header(name: str) -> str:
    """`X-Service-Cert-Serial` for `Cert-Serial`, for the service named `service`."""
    return f"X-{settings.SERVICE_NAME.title()}-{name}"
