"""What a worker serves: a WSGI application, and the lanes that lead past it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from compliance.api.lanes import Lane
from compliance.serving.views import Warming
from compliance.serving.wsgi import Environ, WsgiApplication


@dataclass(frozen=True)
class Site:
    """A WSGI application with lanes; `lanes` makes a worker its own."""

    application: WsgiApplication
    lanes: Callable[[], Sequence[Lane]]
    warming: Warming

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The application without its lanes, for servers that have none."""
        return self.application(environ, start_response)
