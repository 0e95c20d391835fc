"""The errors of tenancy."""

from compliance.core.errors import NotFound, Unauthorized


class MissingCredentials(Unauthorized):
    message = "Missing Authorization header: send 'Authorization: Bearer <API key>'"


class InvalidApiKey(Unauthorized):
    message = "Invalid API key"


class RevokedApiKey(Unauthorized):
    message = "API key has been revoked"


class ExpiredApiKey(Unauthorized):
    message = "API key has expired"


class TenantNotFound(NotFound):
    message = "Tenant not found"


class ApiKeyNotFound(NotFound):
    message = "API key not found"
