"""Remove secrets from text that is written to a log.

What the settings hold as secrets is removed wherever it stands; what clients hold is known by its form.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final
from urllib.parse import quote

from django.conf import settings

HIDDEN: Final = "[redacted]"
SHORTEST: Final = 8
"""Octets of the shortest configured secret that is looked for: a shorter one is part of ordinary words."""
_SECRET_SETTINGS: Final = re.compile(r"SECRET|PASSWORD|TOKEN$|(?:^|_)(?:SO_)?PIN$|_KEYS$")
# API keys, webhook secrets, JWTs (RFC 7515 §3.1), private keys in PEM. What may be tried from many places is
# bounded: a client's text must not cost the square of its length.
_SHAPES: Final = (
    r"\b[A-Za-z0-9]{1,64}_(?:live|test)_[A-Za-z0-9_-]{16,}",
    r"whsec_[A-Za-z0-9+/=_-]+",
    r"\beyJ[A-Za-z0-9_-]{1,2000}\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*){0,3}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
)
_SHAPE: Final = re.compile("|".join(_SHAPES), re.DOTALL)
# PostgreSQL quotes rows and values in its errors, and so whole payloads. Nothing tells where a row ends but
# the end of the error.
_QUOTED: Final = (
    (
        re.compile(r"(\bDETAIL: {1,2}).*?(?=\n\n(?:The above|During handling)|\Z)", re.DOTALL),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(\binvalid input (?:syntax|value) for [^:\n]{1,100}: )\"[^\n]*"), rf"\1{HIDDEN}"),
)
# What stands after a name, and is replaced without it.
_NAMED: Final = (
    (re.compile(r"(?i)\b((?:bearer|basic|dpop)\s+)[^\s'\",;]+"), rf"\1{HIDDEN}"),
    (re.compile(r"\b([a-z][a-z0-9+.-]{0,20}://)[^\s/?#'\"@]{1,500}@", re.IGNORECASE), rf"\1{HIDDEN}@"),
    (
        re.compile(
            r"(?i)((?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|pin|pin-value|signature|"
            r"client_secret|code|assertion|cookie|sessionid|csrftoken|authorization)"
            r"[\"']?\s*[=:]\s*)(\"[^\"\n]*\"|'[^'\n]*'|[^\s&;,'\"\])}]+)"
        ),
        rf"\1{HIDDEN}",
    ),
)


def redact(text: str) -> str:
    """Return `text` with every secret replaced by `[redacted]`."""
    for secret in configured():
        if secret in text:
            text = text.replace(secret, HIDDEN)
    text = _SHAPE.sub(HIDDEN, text)
    for pattern, replacement in (*_QUOTED, *_NAMED):
        text = pattern.sub(replacement, text)
    return text


def is_formed_as_secret(text: str) -> bool:
    """Whether a part of `text` has the form of a secret; the answer tells nothing of this service's own."""
    return _SHAPE.search(text) is not None


@cache
def configured() -> tuple[str, ...]:
    """The secrets of the settings, the longest first, also as they stand in URLs."""
    names = (name for name in dir(settings) if name.isupper() and name != "PASSWORD_HASHERS")
    found = {text for name in names for text in _secrets(name, getattr(settings, name))}
    found |= {quote(text, safe="") for text in found}
    return tuple(sorted((text for text in found if len(text) >= SHORTEST), key=len, reverse=True))


def _secrets(name: str, value: Any) -> Iterator[str]:
    """The texts that a setting, or what it holds, keeps under the name of a secret."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _secrets(str(key).upper(), inner)
    elif isinstance(value, str) and "://" in value:
        password = re.search(r"://[^/@]*?:([^/@]+)@", value)
        yield from [password[1]] if password else []
    elif _SECRET_SETTINGS.search(name):
        yield from (
            one for one in (value if isinstance(value, list | tuple) else [value]) if isinstance(one, str)
        )
