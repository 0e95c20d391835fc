"""The errors a service may raise; each class carries its HTTP status and a message for people."""


class ServiceError(Exception):
    """Base of every error that has an answer of its own; never raised itself.

    `status` is the HTTP status the API answers with, `message` the text in `{"error": …}`.
    """

    status: int = 500
    message: str = "Internal server error"

    def __init__(self, message: str | None = None, *, retry_after: int | None = None) -> None:
        self.message = message if message is not None else type(self).message
        self.retry_after = retry_after
        super().__init__(self.message)


class Invalid(ServiceError):
    """400: the request can't be understood or breaks a rule that needs no stored state."""

    status = 400
    message = "Invalid request"


class Unauthorized(ServiceError):
    """401: no credentials, or credentials that don't count (any more)."""

    status = 401
    message = "Missing or invalid API key"


class Forbidden(ServiceError):
    """403: the caller is known and may not do this."""

    status = 403
    message = "This API key lacks permission for the operation"


class NotFound(ServiceError):
    """404: absent, another tenant's, or the other environment's."""

    status = 404
    message = "Not found"


class Conflict(ServiceError):
    """409: the thing already is, or was asked for differently under the same key."""

    status = 409
    message = "Conflict"


class TooLarge(ServiceError):
    """413: the body exceeds the limit."""

    status = 413
    message = "Request body is too large"


class InvalidState(ServiceError):
    """422: a sound request that the resource's present state forbids."""

    status = 422
    message = "Not possible in the present state"


class TooEarly(ServiceError):
    """425: still being made; `retry_after` in seconds."""

    status = 425
    message = "Still being generated; try again shortly"


class Unavailable(ServiceError):
    """503: a dependency (HSM, database, broker) can't serve now; retry with backoff."""

    status = 503
    message = "A dependency is unavailable; retry with exponential backoff"
