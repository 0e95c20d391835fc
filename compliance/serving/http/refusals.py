"""What the server answers by itself to requests that no view can see, in the form of errors at their path."""

from compliance.api.answers import Answer, json_answer
from compliance.api.exceptions import OAUTH, error_body
from compliance.core.errors import TooLarge


class Refusal:
    """An answer of the server's own, which ends the connection unless `closes` is false."""

    def __init__(self, status: int, message: str, *, closes: bool = True) -> None:
        self.status = status
        headers = {"Connection": "close"} if closes else {}
        if status == 503:
            headers["Retry-After"] = "1"
        self.envelope, self.oauth = (
            json_answer(status, error_body(path, status, message), headers, secure=False)
            for path in ("/", OAUTH)
        )

    def at(self, path: str) -> Answer:
        return self.oauth if path.startswith(OAUTH) else self.envelope


MALFORMED = Refusal(400, "The request is not valid HTTP/1.1")
NO_HOST = Refusal(400, "The request needs exactly one Host header")
BAD_TARGET = Refusal(400, "The request target must be a path or an http URL")
CUT_SHORT = Refusal(400, "The request body is cut short or its chunks are malformed")
TOO_SLOW = Refusal(408, "The request did not arrive in time")
TOO_LARGE = Refusal(413, TooLarge.message)
LONG_TARGET = Refusal(414, "The request target is too long")
UNEXPECTED = Refusal(417, "Only Expect: 100-continue is supported")
LARGE_HEAD = Refusal(431, "The request has too many or too large headers")
FAILED = Refusal(500, "Internal server error", closes=False)
CROWDED = Refusal(503, "At capacity; retry with backoff")
BATCHING = Refusal(503, "Other batches are still running; retry with backoff", closes=False)
FULL = Refusal(503, "At capacity; retry with backoff", closes=False)
