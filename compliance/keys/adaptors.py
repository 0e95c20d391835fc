"""HSM keys in the shape that `cryptography`'s builders and PyJWT expect; only signing works, by design."""

import typing
from typing import NoReturn

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric import utils as asymmetric_utils

from compliance.keys.base import KeyBackend, PublicKey, SignatureAlgorithm
from compliance.keys.sign_only import SignOnly, SignsOnly

RSA_ALGORITHMS = {
    "sha256": SignatureAlgorithm.RSA_SHA256,
    "sha384": SignatureAlgorithm.RSA_SHA384,
    "sha512": SignatureAlgorithm.RSA_SHA512,
}


class _InToken(SignOnly):
    """What RSA and EC keys in a token have in common."""

    def __init__(self, backend: KeyBackend, uri: str) -> None:
        self._backend = backend
        self.uri = uri

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.uri}>"

    def _sign(self, data: bytes, hash_algorithm: object, algorithm: SignatureAlgorithm) -> bytes:
        if isinstance(hash_algorithm, asymmetric_utils.Prehashed):
            return self._backend.sign_digest(self.uri, bytes(data), algorithm)
        return self._backend.sign(self.uri, bytes(data), algorithm)


class HsmRSAPrivateKey(_InToken, rsa.RSAPrivateKey):
    """An RSA key in a token: PKCS#1 v1.5 signatures with SHA-256, SHA-384 or SHA-512."""

    def __init__(self, backend: KeyBackend, uri: str, public_key: rsa.RSAPublicKey) -> None:
        super().__init__(backend, uri)
        self._public_key = public_key

    @property
    def key_size(self) -> int:
        return self._public_key.key_size

    def public_key(self) -> rsa.RSAPublicKey:
        return self._public_key

    def sign(
        self,
        data: typing.Any,
        padding: padding.AsymmetricPadding,
        algorithm: asymmetric_utils.Prehashed | hashes.HashAlgorithm | asymmetric_utils.NoDigestInfo,
    ) -> bytes:
        """Sign; raises as `KeyBackend.sign`, and `SignsOnly` for another padding or hash."""
        hash_name = _hash_name(algorithm)
        if not _is_pkcs1v15(padding) or hash_name not in RSA_ALGORITHMS:
            raise SignsOnly("This key signs PKCS#1 v1.5 with SHA-256, SHA-384 or SHA-512 only")
        return self._sign(data, algorithm, RSA_ALGORITHMS[hash_name])

    def decrypt(self, ciphertext: typing.Any, padding: padding.AsymmetricPadding) -> NoReturn:
        raise SignsOnly("This key only signs")


class HsmECPrivateKey(_InToken, ec.EllipticCurvePrivateKey):
    """A P-256 key in a token: ECDSA with SHA-256, signatures in DER."""

    def __init__(self, backend: KeyBackend, uri: str, public_key: ec.EllipticCurvePublicKey) -> None:
        super().__init__(backend, uri)
        self._public_key = public_key

    @property
    def curve(self) -> ec.EllipticCurve:
        return self._public_key.curve

    @property
    def key_size(self) -> int:
        return self._public_key.key_size

    def public_key(self) -> ec.EllipticCurvePublicKey:
        return self._public_key

    def sign(self, data: typing.Any, signature_algorithm: ec.EllipticCurveSignatureAlgorithm) -> bytes:
        """Sign; raises as `KeyBackend.sign`, and `SignsOnly` for another algorithm or hash."""
        is_ecdsa = isinstance(signature_algorithm, ec.ECDSA)
        if not is_ecdsa or _hash_name(signature_algorithm.algorithm) != "sha256":
            raise SignsOnly("This key signs ECDSA with SHA-256 only")
        return self._sign(data, signature_algorithm.algorithm, SignatureAlgorithm.ECDSA_SHA256)

    def exchange(self, algorithm: ec.ECDH, peer_public_key: ec.EllipticCurvePublicKey) -> NoReturn:
        raise SignsOnly("This key only signs")


def adapt(backend: KeyBackend, uri: str, public_key: PublicKey) -> HsmRSAPrivateKey | HsmECPrivateKey:
    """The private key object of a key in a token."""
    if isinstance(public_key, rsa.RSAPublicKey):
        return HsmRSAPrivateKey(backend, uri, public_key)
    return HsmECPrivateKey(backend, uri, public_key)


def _is_pkcs1v15(chosen: object) -> bool:
    return isinstance(chosen, padding.PKCS1v15)


def _hash_name(algorithm: object) -> str:
    """`sha256` and the like; empty for what is not a hash."""
    if isinstance(algorithm, asymmetric_utils.Prehashed):
        algorithm = algorithm._algorithm
    return algorithm.name if isinstance(algorithm, hashes.HashAlgorithm) else ""
