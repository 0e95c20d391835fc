"""What a key may be and do (PKCS#11 attribute templates), and how its public half is read back."""

from collections.abc import Mapping
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from pkcs11 import Attribute, KeyType, MechanismFlag

from compliance.keys.base import PublicKey

CAPABILITIES: Final = MechanismFlag.SIGN | MechanismFlag.VERIFY
"""For `generate_keypair`: sets SIGN and VERIFY, and every other use to false."""

PRIVATE: Final[dict[Attribute, Any]] = {
    Attribute.PRIVATE: True,
    Attribute.SENSITIVE: True,
    Attribute.EXTRACTABLE: False,
}
PUBLIC: Final[dict[Attribute, Any]] = {Attribute.PRIVATE: False}
PASSING_PUBLIC: Final[dict[Attribute, Any]] = {Attribute.PRIVATE: False, Attribute.TOKEN: False}
"""A public half that is read once and not stored: an RSA private key holds it too, and every object in a
token costs each process time and memory.
"""

P256_PARAMETERS: Final = bytes.fromhex("06082a8648ce3d030107")
"""CKA_EC_PARAMS: DER of the object identifier of P-256 (RFC 5480 §2.1.1.1)."""

PUBLIC_ATTRIBUTES: Final = (
    Attribute.KEY_TYPE,
    Attribute.MODULUS,
    Attribute.PUBLIC_EXPONENT,
    Attribute.EC_PARAMS,
    Attribute.EC_POINT,
)


class UnreadablePublicKey(Exception):
    """The object lacks what makes up a public key, or holds one of a kind not used here."""


def decode_public_key(attributes: Mapping[Attribute, Any]) -> PublicKey:
    """Build the public key from the elementary attributes that every module has.

    CKA_PUBLIC_KEY_INFO is not asked for: SoftHSM 2.6 and others leave it empty. Raises `UnreadablePublicKey`.
    """
    kind = attributes.get(Attribute.KEY_TYPE)
    try:
        if kind == KeyType.RSA:
            return _rsa(attributes[Attribute.MODULUS], attributes[Attribute.PUBLIC_EXPONENT])
        if kind == KeyType.EC and attributes[Attribute.EC_PARAMS] == P256_PARAMETERS:
            return ec.EllipticCurvePublicKey.from_encoded_point(
                ec.SECP256R1(), _point(attributes[Attribute.EC_POINT])
            )
    except (KeyError, ValueError) as error:
        raise UnreadablePublicKey(str(error)) from error
    raise UnreadablePublicKey(f"key type {kind!r}")


def _rsa(modulus: int | bytes, exponent: int | bytes) -> rsa.RSAPublicKey:
    return rsa.RSAPublicNumbers(e=_integer(exponent), n=_integer(modulus)).public_key()


def _integer(value: int | bytes) -> int:
    return value if isinstance(value, int) else int.from_bytes(value, "big")


def _point(value: bytes) -> bytes:
    """CKA_EC_POINT is a DER OCTET STRING around the point; some modules give the bare point."""
    is_wrapped = len(value) >= 2 and value[0] == 0x04 and value[1] == len(value) - 2
    return value[2:] if is_wrapped else value
