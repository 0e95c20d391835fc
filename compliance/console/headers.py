"""Security headers of the console's pages."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from compliance.console.views import CONSOLE_PREFIX

# Unfold's Alpine.js compiles its expressions ('unsafe-eval') and sets styles inline; no script stands in a
# page, and nothing comes from another host.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class ConsoleHeadersMiddleware:
    """Adds the console's Content-Security-Policy and Permissions-Policy under /admin/ only."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(CONSOLE_PREFIX):
            response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return response
