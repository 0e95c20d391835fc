"""The JSON of an error that no view answers: the envelope, or below `/oauth/` the form of RFC 6749 §5.2."""

from collections.abc import Mapping
from typing import Final

OAUTH: Final = "/oauth/"
_CODES: Final[Mapping[int, str]] = {
    429: "temporarily_unavailable",
    500: "server_error",
    503: "temporarily_unavailable",
}


def error_body(path: str, status: int, message: str) -> dict[str, str]:
    """Return the body of an error at a path, with the OAuth code of its status where clients expect one."""
    if path.startswith(OAUTH):
        return {"error": _CODES.get(status, "invalid_request"), "error_description": message}
    return {"error": message}
