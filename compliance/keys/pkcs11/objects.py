"""PKCS#11 objects of a key: the attributes a new key gets, and how stored keys are read back."""

from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from pkcs11 import Attribute, KeyType, MechanismFlag, ObjectClass, PKCS11Error

from compliance.core.identifiers import moment_of
from compliance.keys.base import AnyPublicKey, StoredKey
from compliance.keys.uri import PRIVATE as PRIVATE_TYPE, SECRET, Pkcs11Uri, build

SIGN_AND_VERIFY: Final = MechanismFlag.SIGN | MechanismFlag.VERIFY  # sets every other use to false

PRIVATE: Final = {Attribute.PRIVATE: True, Attribute.SENSITIVE: True, Attribute.EXTRACTABLE: False}
PUBLIC: Final = {Attribute.PRIVATE: False}
SESSION_PUBLIC: Final = {Attribute.PRIVATE: False, Attribute.TOKEN: False}
"""A public key object that ends with its session: an RSA private key holds the public key too."""

P256_PARAMETERS: Final = bytes.fromhex("06082a8648ce3d030107")  # its OID (RFC 5480 §2.1.1.1)
P256_POINT: Final = 65  # octets, uncompressed
ED25519_PARAMETERS: Final = bytes.fromhex("06032b6570")  # its OID (RFC 8410 §3)
ED25519_NAMES: Final = (ED25519_PARAMETERS, b"\x13\x0cedwards25519")
"""How tokens name the curve: by OID or PrintableString (PKCS#11 v3.0 §2.3.5)."""
ED25519_POINT: Final = 32

PUBLIC_ATTRIBUTES: Final = (
    *(Attribute.KEY_TYPE, Attribute.MODULUS, Attribute.PUBLIC_EXPONENT),
    *(Attribute.EC_PARAMS, Attribute.EC_POINT),
)
TIMED: Final = 7


def read_public_key(found: Any) -> AnyPublicKey | None:
    """Build a key object's public key, each attribute read by itself, as modules need; else None."""
    values: dict[Attribute, Any] = {}
    for attribute in PUBLIC_ATTRIBUTES:
        with suppress(PKCS11Error):
            values[attribute] = found[attribute]
    with suppress(KeyError, ValueError):
        kind = values[Attribute.KEY_TYPE]
        if kind == KeyType.RSA:
            exponent, modulus = values[Attribute.PUBLIC_EXPONENT], values[Attribute.MODULUS]
            return rsa.RSAPublicNumbers(e=_integer(exponent), n=_integer(modulus)).public_key()
        if kind == KeyType.EC and values[Attribute.EC_PARAMS] == P256_PARAMETERS:
            point = _point(values[Attribute.EC_POINT], P256_POINT)
            return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        if kind == KeyType.EC_EDWARDS and values[Attribute.EC_PARAMS] in ED25519_NAMES:
            point = _point(values[Attribute.EC_POINT], ED25519_POINT)
            return ed25519.Ed25519PublicKey.from_public_bytes(point)
    return None


def _integer(value: int | bytes) -> int:
    return value if isinstance(value, int) else int.from_bytes(value, "big")


def _point(value: bytes, octets: int) -> bytes:
    """Unwrap CKA_EC_POINT, a DER OCTET STRING around the point; some modules give the bare point."""
    is_wrapped = len(value) == octets + 2 and value[:2] == bytes((0x04, octets))
    return value[2:] if is_wrapped else value


def stored_key(token_label: str, key_id: bytes, labels: dict[ObjectClass, str]) -> StoredKey:
    label = next(iter(labels.values()))
    is_secret = ObjectClass.SECRET_KEY in labels
    uri = build(Pkcs11Uri(token_label, key_id, label, SECRET if is_secret else PRIVATE_TYPE))
    private, public = is_secret or ObjectClass.PRIVATE_KEY in labels, ObjectClass.PUBLIC_KEY in labels
    # An id that this service made holds the time.
    made = UUID(bytes=key_id) if len(key_id) == 16 else None
    made_at = moment_of(made) if made and made.version == TIMED else None
    return StoredKey(uri, label, has_private=private, has_public=public, made_at=made_at)
