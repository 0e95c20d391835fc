"""What is read of the objects in a token: public keys, attributes, and how a listing tells of them."""

from datetime import datetime
from typing import Any, Final
from uuid import UUID

from pkcs11 import Attribute, ObjectClass, PKCS11Error

from compliance.identifiers import moment_of
from compliance.keys.base import PublicKey, StoredKey
from compliance.keys.failures import KeyMissing
from compliance.keys.templates import PUBLIC_ATTRIBUTES, UnreadablePublicKey, decode_public_key
from compliance.keys.token import Borrowed
from compliance.keys.uri import Pkcs11Uri, build

UUID_OCTETS: Final = 16
TIMED: Final = 7


def read_public_key(borrowed: Borrowed, key_id: bytes) -> PublicKey:
    """From the public object, or from the private one on modules that keep no public objects."""
    halves = [*borrowed.find(ObjectClass.PUBLIC_KEY, key_id), *borrowed.find(ObjectClass.PRIVATE_KEY, key_id)]
    for half in halves:
        try:
            return decode_public_key(attributes_of(half))
        except UnreadablePublicKey:
            continue
    raise KeyMissing(f"no public key among {len(halves)} objects")


def attributes_of(found: Any) -> dict[Attribute, Any]:
    """Those of the wanted attributes that the object has; asked one by one, as some modules fail a mixed
    request.
    """
    values: dict[Attribute, Any] = {}
    for attribute in PUBLIC_ATTRIBUTES:
        try:
            values[attribute] = found[attribute]
        except PKCS11Error:
            continue
    return values


def stored_key(token_label: str, key_id: bytes, kinds: dict[ObjectClass, str]) -> StoredKey:
    label = next(iter(kinds.values()))
    return StoredKey(
        uri=build(Pkcs11Uri(token=token_label, id=key_id, object=label)),
        label=label,
        has_private=ObjectClass.PRIVATE_KEY in kinds,
        has_public=ObjectClass.PUBLIC_KEY in kinds,
        made_at=_made_at(key_id),
    )


def _made_at(key_id: bytes) -> datetime | None:
    """The time in the id that this backend gives its keys (UUIDv7); None for ids from elsewhere."""
    if len(key_id) != UUID_OCTETS:
        return None
    identifier = UUID(bytes=key_id)
    return moment_of(identifier) if identifier.version == TIMED else None
