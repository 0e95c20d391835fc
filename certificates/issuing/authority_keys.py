"""The private keys of CAs."""

from typing import cast

from cryptography.hazmat.primitives.asymmetric import rsa

from certificates.models import CertificateAuthority
from compliance.core import environments
from compliance.keys.registry import private_key


def signing_key(authority: CertificateAuthority) -> rsa.RSAPrivateKey:
    """The CA's private key in the HSM; raises `Unavailable` if that does not answer."""
    return cast("rsa.RSAPrivateKey", private_key(environments.current(), authority.key_uri))
