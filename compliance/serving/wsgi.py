"""A request as a WSGI environment (PEP 3333), and a WSGI application's answer."""

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from compliance.api.answers import Answer, Headers
from compliance.observing.middleware import HANDED_ON
from compliance.serving.http.messages import BODILESS, Received

Environ = dict[str, Any]
WsgiApplication = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def environ_of(request: Received) -> Environ:
    """The WSGI environment, without headers with an underscore: `X_Forwarded_For` is another name."""
    name, port = request.server
    environ: Environ = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path,
        "QUERY_STRING": request.query,
        "SERVER_PROTOCOL": f"HTTP/{request.http_version}",
        "SERVER_NAME": name,
        "SERVER_PORT": str(port),
        "REMOTE_ADDR": request.address,
        "CONTENT_LENGTH": str(len(request.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": request.scheme,
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        HANDED_ON: request.correlation,
    }
    for name, value in request.headers:
        if name == "content-type":
            environ["CONTENT_TYPE"] = value
        elif name != "content-length" and "_" not in name:
            variable = "HTTP_" + name.upper().replace("-", "_")
            joint = "; " if name == "cookie" else ","
            environ[variable] = f"{environ[variable]}{joint}{value}" if variable in environ else value
    return environ


@dataclass(frozen=True)
class OpenAnswer:
    """The beginning of an answer, and its body, which the thread that asked for it makes piece by piece."""

    head: Answer
    pieces: Iterator[bytes]
    close: Callable[[], None]


def begin(application: WsgiApplication, environ: Environ) -> Answer | OpenAnswer:
    """The application's answer; left open if Django streams a body of unknown length, and there is one."""
    told: list[tuple[int, Headers]] = []

    def start_response(status: str, headers: Headers, exc_info: Any = None) -> None:
        told.append((int(status.split(" ", 1)[0]), headers))

    pieces = application(environ, start_response)
    if getattr(pieces, "streaming", False):
        status, headers = told[-1]
        if status not in BODILESS and "content-length" not in {name.lower() for name, _ in headers}:
            # An empty piece, which WSGI permits anywhere, would end the body.
            some = filter(None, pieces)
            return OpenAnswer(Answer(status, headers, b""), some, pieces.close)  # type: ignore[attr-defined]
    try:
        body = b"".join(pieces)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
        environ["wsgi.input"].close()  # else the body stays until the request is collected as garbage
    return Answer(*told[-1], body)
