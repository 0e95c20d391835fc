"""PKCS#11 URIs (RFC 7512): the durable name of a key, stored as `kms_key_arn`.

`pkcs11:token=live;object=agent-018f;id=%9A%00%FF;type=private`. Only path attributes are known here: a
query (`pin-value`, `pin-source`, `module-path`) is refused, so a PIN can't end up in a row or a log.
"""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

SCHEME = "pkcs11:"
# RFC 7512 §2.3: unreserved characters and pk11-path-res-avail may stand as they are.
UNESCAPED = "-._~:[]@!$'()*+,=&"
KNOWN_ATTRIBUTES = frozenset({"token", "object", "id", "type"})
TYPES = frozenset({"private", "public"})
MAX_LENGTH = 2_000


class InvalidUri(ValueError):
    """Not a PKCS#11 URI of the form this service writes."""


@dataclass(frozen=True)
class Pkcs11Uri:
    """The attributes that name one key object; `id` is CKA_ID in raw octets."""

    token: str
    id: bytes
    object: str = ""
    type: str = "private"

    def __str__(self) -> str:
        return build(self)


def build(uri: Pkcs11Uri) -> str:
    """Spell out a URI, every octet of the id percent-encoded (as RFC 7512 §2.3 recommends)."""
    identifier = "".join(f"%{octet:02X}" for octet in uri.id)
    label = f"object={quote(uri.object, safe=UNESCAPED)};" if uri.object else ""
    return f"{SCHEME}token={quote(uri.token, safe=UNESCAPED)};{label}id={identifier};type={uri.type}"


@lru_cache(maxsize=4_096)
def parse(text: str) -> Pkcs11Uri:
    """Read a URI; raises `InvalidUri` for anything ambiguous, unknown, or without token and id."""
    if len(text) > MAX_LENGTH or not text.startswith(SCHEME):
        raise InvalidUri("not a pkcs11: URI")
    if "?" in text:
        raise InvalidUri("query attributes are not accepted")
    attributes = _attributes(text.removeprefix(SCHEME))
    if not attributes.get("token") or not attributes.get("id"):
        raise InvalidUri("token and id are required")
    kind = _text(attributes.get("type", b"private"))
    if kind not in TYPES:
        raise InvalidUri("type is neither private nor public")
    return Pkcs11Uri(
        token=_text(attributes["token"]),
        object=_text(attributes.get("object", b"")),
        id=attributes["id"],
        type=kind,
    )


def _attributes(path: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for part in path.split(";"):
        name, separator, value = part.partition("=")
        if not separator or name not in KNOWN_ATTRIBUTES or name in found:
            raise InvalidUri(f"attribute {name[:32]!r} is malformed, unknown or repeated")
        found[name] = unquote_to_bytes(value)
    return found


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidUri("a name is not UTF-8") from error
