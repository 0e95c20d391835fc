"""What the server answers by itself, in the envelope, to requests that no view can see."""

from compliance.api.answers import Answer, json_answer
from compliance.core.errors import TooLarge

_CLOSING = {"Connection": "close"}


def _refusal(status: int, message: str, headers: dict[str, str] = _CLOSING) -> Answer:
    return json_answer(status, {"error": message}, headers, secure=False)


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
