"""The errors a service may raise; each class carries its HTTP status and a message for people."""

from collections.abc import Mapping


class ServiceError(Exception):
    """Base of the errors that the API answers with `status`, `headers` and `{"error": message}`."""

    status: int = 500
    message: str = "Internal server error"
    retry_after: int | None = None

    def __init__(
        self,
        message: str | None = None,
        *,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.message = type(self).message if message is None else message
        self.retry_after = self.retry_after if retry_after is None else retry_after
        self.headers = headers or {}
        super().__init__(self.message)


class Invalid(ServiceError):
    """400: the request can't be understood or breaks a rule that needs no stored state."""

    status = 400
    message = "Invalid request"


class Unauthorized(ServiceError):
    status = 401
    message = "Missing or invalid API key"


class Forbidden(ServiceError):
    status = 403
    message = "This API key lacks permission for the operation"


class NotFound(ServiceError):
    """404: absent, another tenant's, or the other environment's."""

    status = 404
    message = "Not found"


class Conflict(ServiceError):
    """409: it exists already, or the same idempotency key came with another request."""

    status = 409
    message = "Conflict"


class Busy(Conflict):
    """409: a lock time-out or deadlock; nothing is changed, and another try may succeed."""

    message = "Another request is changing the same record; try again"


class TooLarge(ServiceError):
    status = 413
    message = "Request body is too large"


class InvalidState(ServiceError):
    """422: a sound request that the resource's present state forbids."""

    status = 422
    message = "Not possible in the present state"


class TooEarly(ServiceError):
    """425: not finished yet; `retry_after` is in seconds."""

    status = 425
    message = "Still being generated; try again shortly"


class LimitReached(ServiceError):
    """429: the caller or its tenant has used up what it may have; `headers` are those of a rate limit."""

    status = 429
    message = "Rate limit exceeded"


class Unavailable(ServiceError):
    """503: a dependency (HSM, database, broker) can't serve now; retry with backoff."""

    status = 503
    message = "A dependency is unavailable; retry with exponential backoff"
