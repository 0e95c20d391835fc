"""Keys that sign with nothing, for drafts: nobody can take one for a certificate, whatever becomes of it."""

import typing
from typing import NoReturn

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo, Prehashed

from compliance.keys.sign_only import SignOnly, SignsOnly


class _Blank(SignOnly):
    """What the two kinds have in common."""

    def public_key(self) -> NoReturn:
        raise SignsOnly("There is no key")


class BlankRSAKey(_Blank, rsa.RSAPrivateKey):
    """Signs as an RSA key of so many bits would, in form."""

    def __init__(self, bits: int) -> None:
        self._bits = bits

    @property
    def key_size(self) -> int:
        return self._bits

    def sign(
        self,
        data: typing.Any,
        padding: padding.AsymmetricPadding,
        algorithm: Prehashed | hashes.HashAlgorithm | NoDigestInfo,
    ) -> bytes:
        return bytes(self._bits // 8)

    def decrypt(self, ciphertext: typing.Any, padding: padding.AsymmetricPadding) -> NoReturn:
        raise SignsOnly("There is no key")


class BlankECKey(_Blank, ec.EllipticCurvePrivateKey):
    """Signs as a P-256 key would, in form."""

    @property
    def curve(self) -> ec.EllipticCurve:
        return ec.SECP256R1()

    @property
    def key_size(self) -> int:
        return self.curve.key_size

    def sign(self, data: typing.Any, signature_algorithm: ec.EllipticCurveSignatureAlgorithm) -> bytes:
        return bytes(8)

    def exchange(self, algorithm: ec.ECDH, peer_public_key: ec.EllipticCurvePublicKey) -> NoReturn:
        raise SignsOnly("There is no key")


def blank_like(real: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> BlankRSAKey | BlankECKey:
    """A blank key of the kind of a real one, so that both are given the same octets to sign."""
    return BlankRSAKey(real.key_size) if isinstance(real, rsa.RSAPrivateKey) else BlankECKey()
