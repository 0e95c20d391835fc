"""What the server answers by itself to requests that no view can see, in the form of errors at their path."""

from dataclasses import dataclass

from compliance.api.answers import Answer, json_answer
from compliance.api.exceptions import OAUTH, error_body
from compliance.core.errors import TooLarge

_CLOSING = {"Connection": "close"}


@dataclass(frozen=True)
class Refusal:
    """An answer of the server's own: `envelope`, but to clients of the OAuth endpoints `oauth`."""

    envelope: Answer
    oauth: Answer

    @property
    def status(self) -> int:
        return self.envelope.status

    def at(self, path: str) -> Answer:
        """Return the answer to a request for this path."""
        return self.oauth if path.startswith(OAUTH) else self.envelope


def _refusal(status: int, message: str, headers: dict[str, str] = _CLOSING) -> Refusal:
    envelope, oauth = (
        json_answer(status, error_body(path, status, message), headers, secure=False) for path in ("/", OAUTH)
    )
    return Refusal(envelope, oauth)


MALFORMED = _refusal(400, "The request is not valid HTTP/1.1")
NO_HOST = _refusal(400, "The request needs exactly one Host header")
BAD_TARGET = _refusal(400, "The request target must be a path or an http URL")
CUT_SHORT = _refusal(400, "The request body is cut short or its chunks are malformed")
TOO_SLOW = _refusal(408, "The request did not arrive in time")
TOO_LARGE = _refusal(413, TooLarge.message)
LONG_TARGET = _refusal(414, "The request target is too long")
UNEXPECTED = _refusal(417, "Only Expect: 100-continue is supported")
LARGE_HEAD = _refusal(431, "The request has too many or too large headers")
FAILED = _refusal(500, "Internal server error", {})
CROWDED = _refusal(503, "At capacity; retry with backoff", {**_CLOSING, "Retry-After": "1"})
FULL = _refusal(503, "At capacity; retry with backoff", {"Retry-After": "1"})
