"""URIs of HTTP requests in the one spelling in which proofs are compared (RFC 9449 §4.3, RFC 3986 §6.2)."""

import re
from functools import lru_cache

MAX_LENGTH = 2_048
DEFAULT_PORTS = {"http": "80", "https": "443"}
# A host in brackets or of unreserved characters and sub-delims, never of percent-encoded ones (an IDN comes
# as A-labels); no user information, since `@` is in none of the groups; characters of RFC 3986 only.
_PARTS = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._~!$&'()*+,;=-]+)(?::(?P<port>[0-9]{0,5}))?"
    r"(?P<path>(?:/(?:[a-z0-9._~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?)"
    r"(?:\?(?:[a-z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?"
    r"(?:#(?:[a-z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?",
    re.IGNORECASE | re.ASCII,
)
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


@lru_cache(maxsize=1_024)
def normalised(uri: str) -> str:
    """The URI without query and fragment, normalised by syntax and scheme; ValueError for any other text.

    Scheme and host are in lower case, the scheme's port and dot segments left out, percent-encoding in upper
    case and only where needed, and an empty path is `/`. A trailing slash makes a difference.
    """
    parts = _PARTS.fullmatch(uri) if len(uri) <= MAX_LENGTH else None
    if parts is None:
        raise ValueError("not an absolute http or https URI")
    scheme, host = parts["scheme"].lower(), parts["host"].lower()
    port = (parts["port"] or "").lstrip("0")
    shown = "" if port in ("", DEFAULT_PORTS[scheme]) else f":{port}"
    path = _without_dots(_ENCODED.sub(_spelt_once, parts["path"]))
    return f"{scheme}://{host}{shown}{path}"


def _spelt_once(found: re.Match[str]) -> str:
    character = chr(int(found[0][1:], 16))
    return character if _UNRESERVED.fullmatch(character) else found[0].upper()


def _without_dots(path: str) -> str:
    """RFC 3986 §5.2.4, for a path that is empty or begins with a slash."""
    kept: list[str] = []
    segments = path.split("/")[1:] or [""]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
