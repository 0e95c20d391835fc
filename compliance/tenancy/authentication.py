"""`Authorization: Bearer <API key>` for the REST API."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from compliance import environments
from compliance.clock import now
from compliance.tenancy import keys, services
from compliance.tenancy.errors import InvalidApiKey, MissingCredentials
from compliance.tenancy.models import ApiKey


@dataclass(frozen=True)
class Caller:
    """The principal behind an API key, in the place where DRF keeps the user."""

    tenant_id: UUID
    is_authenticated: bool = True


def bearer_token(request: HttpRequest | Request) -> str | None:
    """The credentials of a Bearer header; None without the header or under another scheme."""
    scheme, _, credentials = request.META.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" and credentials.strip() else None


class ApiKeyAuthentication(BaseAuthentication):
    """Looks the key up in the environment that its prefix names; raises 401s."""

    def authenticate(self, request: Request) -> tuple[Caller, ApiKey]:
        secret = bearer_token(request)
        if secret is None:
            raise MissingCredentials()
        if keys.environment_of(secret) is not environments.current():
            raise InvalidApiKey()
        row = services.authenticate(secret=secret, now=now())
        return Caller(row.tenant_id), row

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="api"'
