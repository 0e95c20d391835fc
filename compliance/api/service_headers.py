"""Names of headers that the name of the service yields (`SERVICE_NAME`)."""

from functools import cache

from django.conf import settings


@cache
def service_header(name: str) -> str:
    """`X-Service-Cert-Serial` for `Cert-Serial`, for the service named `service`."""
    return f"X-{settings.SERVICE_NAME.title()}-{name}"
