"""Bodies sent in chunks: Django reads only as much as Content-Length tells, and they tell none."""

from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Any

from django.conf import settings

WsgiApplication = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def with_lengths(application: WsgiApplication) -> WsgiApplication:
    """Give chunked bodies (RFC 9112 §7.1) a length before Django sees them.

    One byte past the limit is read, no more: the parser then answers 413 as for any other body.
    """

    def wrapper(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if "HTTP_TRANSFER_ENCODING" in environ and environ.get("wsgi.input_terminated"):
            body = environ["wsgi.input"].read(settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)
            environ["wsgi.input"] = BytesIO(body)
            environ["CONTENT_LENGTH"] = str(len(body))
        return application(environ, start_response)

    return wrapper
