"""`Authorization: Bearer <API key>` for the REST API."""

from dataclasses import dataclass
from uuid import UUID

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.errors import Unauthorized
from compliance.observing import correlation
from tenancy import keys, services
from tenancy.models import ApiKey


class MissingCredentials(Unauthorized):
    message = "Missing Authorization header: send 'Authorization: Bearer <API key>'"


@dataclass(frozen=True)
class ApiKeyUser:
    """The principal behind an API key, in the place where DRF keeps the user."""

    tenant_id: UUID
    is_authenticated: bool = True


class ApiKeyAuthentication(BaseAuthentication):
    """Looks the key up in the environment that its prefix names; raises 401s."""

    def authenticate(self, request: Request) -> tuple[ApiKeyUser, ApiKey]:
        secret = request.parser_context["view"].presented_key(request._request)
        if not secret:
            raise MissingCredentials()
        if keys.environment_of(secret) is not environments.current():
            raise services.InvalidApiKey()
        row = services.authenticate(secret=secret, now=now())
        correlation.bind(tenant=row.tenant_id)
        return ApiKeyUser(row.tenant_id), row

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="api"'
