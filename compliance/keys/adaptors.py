"""HSM keys as the private keys that `cryptography`'s builders and PyJWT expect; they can only sign."""

from typing import Any, Generic, NoReturn, Self, TypeVar

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import AsymmetricPadding, PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import NoDigestInfo, Prehashed

from compliance.keys.backend import KeyBackend
from compliance.keys.base import DIGEST_OCTETS, PublicKey, SignatureAlgorithm

Hash = Prehashed | hashes.HashAlgorithm | NoDigestInfo
Public = TypeVar("Public", bound=PublicKey)


class SignsOnly(TypeError):
    """The caller wants the private key itself, or a use other than signing: a defect of its code."""


class SignOnly:
    """Mixin for private keys that only sign: never copied, never exported."""

    def itself(self, *memo: dict[int, object]) -> Self:
        return self

    def refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise SignsOnly("This private key only signs, and cannot be exported")

    __copy__ = __deepcopy__ = itself
    private_bytes = private_numbers = decrypt = exchange = refuse


class _BackendKey(SignOnly, Generic[Public]):
    def __init__(self, backend: KeyBackend, uri: str, public_key: Public) -> None:
        self._backend = backend
        self.uri = uri
        self._public_key = public_key

    @property
    def key_size(self) -> int:
        return self._public_key.key_size

    def public_key(self) -> Public:
        return self._public_key

    def _sign(self, data: bytes, hash_algorithm: object, algorithm: SignatureAlgorithm) -> bytes:
        if isinstance(hash_algorithm, hashes.SHA256):
            return self._backend.sign(self.uri, bytes(data), algorithm)
        # It shows only the digest's length; the keys sign SHA-2 alone.
        if isinstance(hash_algorithm, Prehashed) and hash_algorithm.digest_size == DIGEST_OCTETS:
            return self._backend.sign_digest(self.uri, bytes(data), algorithm)
        raise SignsOnly("This key signs with SHA-256 only")


class HsmRSAPrivateKey(_BackendKey[rsa.RSAPublicKey], rsa.RSAPrivateKey):
    """An RSA key in a token: PKCS#1 v1.5 signatures with SHA-256."""

    def sign(self, data: Any, padding: AsymmetricPadding, algorithm: Hash) -> bytes:
        """Sign; raises as `KeyBackend.sign`, and `SignsOnly` for another padding or hash."""
        if not isinstance(padding, PKCS1v15):
            raise SignsOnly("This key signs PKCS#1 v1.5 with SHA-256 only")
        return self._sign(data, algorithm, SignatureAlgorithm.RSA_SHA256)


class HsmECPrivateKey(_BackendKey[ec.EllipticCurvePublicKey], ec.EllipticCurvePrivateKey):
    """A P-256 key in a token: ECDSA signatures with SHA-256, in DER."""

    @property
    def curve(self) -> ec.EllipticCurve:
        return self._public_key.curve

    def sign(self, data: Any, signature_algorithm: ec.EllipticCurveSignatureAlgorithm) -> bytes:
        """Sign; raises as `KeyBackend.sign`, and `SignsOnly` for another algorithm or hash."""
        if not isinstance(signature_algorithm, ec.ECDSA):
            raise SignsOnly("This key signs ECDSA with SHA-256 only")
        return self._sign(data, signature_algorithm.algorithm, SignatureAlgorithm.ECDSA_SHA256)
