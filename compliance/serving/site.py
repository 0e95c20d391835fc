"""What a worker serves: a WSGI application, and the fast path before it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from compliance.serving.django_process import Startup
from compliance.serving.server import LoopEntrance
from compliance.serving.wsgi import Environ, WsgiApplication


@dataclass(frozen=True)
class Site:
    """A WSGI application with a fast path; `fast_path` makes that of a worker."""

    application: WsgiApplication
    fast_path: Callable[[], LoopEntrance]
    startup: Startup

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The application without its fast path, for servers that have none."""
        return self.application(environ, start_response)
