"""PKCS#11 URIs (RFC 7512), without query attributes such as `pin-value`: no PIN gets into a row or a log."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

SCHEME = "pkcs11:"
# RFC 7512 §2.3: unreserved characters and pk11-path-res-avail need no escape.
UNESCAPED = "-._~:[]@!$'()*+,=&"
KNOWN_ATTRIBUTES = frozenset({"token", "object", "id", "type"})
MAX_LENGTH = 2_000
PRIVATE = "private"
SECRET = "secret-key"


class InvalidUri(ValueError):
    """The text is no PKCS#11 URI as this service writes them."""


@dataclass(frozen=True)
class Pkcs11Uri:
    """Attributes that name one key; `id` is CKA_ID in raw octets."""

    token: str
    id: bytes
    object: str = ""
    type: str = PRIVATE


def build(uri: Pkcs11Uri) -> str:
    """Write a URI with the id percent-encoded, as RFC 7512 §2.3 recommends."""
    identifier = "".join(f"%{octet:02X}" for octet in uri.id)
    label = f"object={quote(uri.object, safe=UNESCAPED)};" if uri.object else ""
    return f"{SCHEME}token={quote(uri.token, safe=UNESCAPED)};{label}id={identifier};type={uri.type}"


@lru_cache(maxsize=4_096)
def parse(text: str) -> Pkcs11Uri:
    """Read a URI; raises `InvalidUri` for one that is ambiguous, has an unknown part, or no token or id."""
    if len(text) > MAX_LENGTH or not text.startswith(SCHEME):
        raise InvalidUri("not a pkcs11: URI")
    if "?" in text:
        raise InvalidUri("query attributes are not accepted")
    attributes: dict[str, bytes] = {}
    for part in text.removeprefix(SCHEME).split(";"):
        name, separator, value = part.partition("=")
        if not separator or name not in KNOWN_ATTRIBUTES or name in attributes:
            raise InvalidUri(f"attribute {name[:32]!r} is malformed, unknown or repeated")
        attributes[name] = unquote_to_bytes(value)
    if not attributes.get("token") or not attributes.get("id"):
        raise InvalidUri("token and id are required")
    try:
        label, kind = attributes.get("object", b"").decode(), attributes.get("type", b"private").decode()
        if kind not in (PRIVATE, SECRET):
            raise InvalidUri("type is neither private nor secret-key")
        return Pkcs11Uri(token=attributes["token"].decode(), object=label, id=attributes["id"], type=kind)
    except UnicodeDecodeError as error:
        raise InvalidUri("a name is not UTF-8") from error
