"""Form bodies (application/x-www-form-urlencoded) as the OAuth endpoints read them: strictly.

RFC 6749 §3.2: a parameter without a value counts as omitted, unknown ones are ignored, and none may be sent
twice, but for those of which a standard allows several.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote_plus

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest

from compliance.core.errors import TooLarge
from delegation.oauth.errors import InvalidRequest, UnsupportedForm

MEDIA_TYPE = "application/x-www-form-urlencoded"
MAX_BYTES = 65_536
"""Room for the three largest tokens."""
MAX_FIELDS = 100
REPEATABLE = frozenset({"audience", "resource"})  # RFC 8693 §2.1
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class Form:
    """The parameters that have a value, each with its values in order."""

    values: Mapping[str, Sequence[str]]

    def get(self, name: str) -> str | None:
        """The value of a parameter that may be sent once; None if it is omitted."""
        found = self.values.get(name)
        return found[0] if found else None

    def require(self, name: str) -> str:
        """The value of a parameter. Raises: InvalidRequest if it is omitted."""
        value = self.get(name)
        if value is None:
            raise InvalidRequest(f"{name} is missing")
        return value

    def all(self, name: str) -> Sequence[str]:
        """The values of a parameter that may be repeated."""
        return self.values.get(name, ())


def of(request: HttpRequest) -> Form:
    """The form of a request, parsed once. Raises: OAuthError, TooLarge."""
    if (kept := vars(request).get("oauth_form")) is not None:
        return cast("Form", kept)
    if request.META.get("QUERY_STRING"):
        raise InvalidRequest("Parameters belong in the body, never in the URL")
    if request.content_type != MEDIA_TYPE:
        raise UnsupportedForm()
    if (request.content_params or {}).get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
        raise UnsupportedForm("The form must be in UTF-8")
    try:
        found = parse(request.body)
    except RequestDataTooBig as error:
        raise TooLarge() from error
    vars(request)["oauth_form"] = found
    return found


def sent(request: HttpRequest) -> Form:
    """As `of`; an empty form for a request of another type."""
    return of(request) if request.content_type == MEDIA_TYPE else Form({})


def parse(raw: bytes) -> Form:
    """The form in a body. Raises: InvalidRequest."""
    if len(raw) > MAX_BYTES:
        raise InvalidRequest(f"The form is larger than {MAX_BYTES} bytes")
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError as error:
        raise InvalidRequest("The form holds bytes that are not percent-encoded") from error
    fields = [field for field in text.split("&") if field]
    if len(fields) > MAX_FIELDS:
        raise InvalidRequest(f"The form has more than {MAX_FIELDS} parameters")
    found: dict[str, list[str]] = {}
    for field in fields:
        name, _, value = field.partition("=")
        found.setdefault(decoded(name), []).append(decoded(value))
    for name, values in found.items():
        if any(values) and len(values) > 1 and name not in REPEATABLE:
            known = name if name.isascii() and name.isidentifier() and len(name) <= 40 else "A parameter"
            raise InvalidRequest(f"{known} is sent more than once")
    return Form({name: [one for one in values if one] for name, values in found.items() if any(values)})


def decoded(text: str) -> str:
    """Percent-encoded text as UTF-8. Raises: InvalidRequest for what is not, and for NUL."""
    if _BROKEN_ESCAPE.search(text):
        raise InvalidRequest("The form has a broken percent-escape")
    try:
        found = unquote_plus(text, encoding="utf-8", errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidRequest("The form is not valid UTF-8") from error
    if "\x00" in found:
        raise InvalidRequest("Parameters must not contain NUL characters")
    return found
