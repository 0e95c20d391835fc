"""HSM keys in the hands of `cryptography` and PyJWT."""

import copy
import datetime as dt
from typing import cast

import jwt
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from compliance.keys.adaptors import HsmECPrivateKey, HsmRSAPrivateKey, SignsOnly
from compliance.keys.backend import KeyBackend

NOW = dt.datetime(2026, 11, 20, tzinfo=dt.UTC)
NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "adaptors")])


@pytest.fixture
def rsa_key(backend: KeyBackend) -> HsmRSAPrivateKey:
    ref = backend.generate_rsa(label="adaptors")
    return HsmRSAPrivateKey(backend, ref.uri, cast("rsa.RSAPublicKey", ref.public_key))


@pytest.fixture
def ec_key(backend: KeyBackend) -> HsmECPrivateKey:
    ref = backend.generate_ec(label="adaptors")
    return HsmECPrivateKey(backend, ref.uri, cast("ec.EllipticCurvePublicKey", ref.public_key))


def sign_certificate(key: HsmRSAPrivateKey | HsmECPrivateKey) -> x509.Certificate:
    builder = x509.CertificateBuilder(NAME, NAME, key.public_key(), 1, NOW, NOW + dt.timedelta(days=1))
    return builder.sign(key, hashes.SHA256())


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kind", ["rsa", "ec"])
def test_key_signs_certificates(request: pytest.FixtureRequest, kind: str) -> None:
    key = request.getfixturevalue(f"{kind}_key")

    certificate = sign_certificate(key)

    assert certificate.public_key() == key.public_key()
    certificate.verify_directly_issued_by(certificate)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(("kind", "algorithm"), [("rsa", "RS256"), ("ec", "ES256")])
def test_key_signs_tokens_through_pyjwt(request: pytest.FixtureRequest, kind: str, algorithm: str) -> None:
    key = request.getfixturevalue(f"{kind}_key")

    token = jwt.encode({"sub": "agent"}, key, algorithm=algorithm)

    assert jwt.decode(token, key.public_key(), algorithms=[algorithm]) == {"sub": "agent"}


def test_prehashed_data_is_signed_as_it_is(rsa_key: HsmRSAPrivateKey, ec_key: HsmECPrivateKey) -> None:
    digest = hashes.Hash(hashes.SHA256())
    digest.update(b"payload")
    hashed = digest.finalize()

    rsa_signature = rsa_key.sign(hashed, padding.PKCS1v15(), utils.Prehashed(hashes.SHA256()))
    ec_signature = ec_key.sign(hashed, ec.ECDSA(utils.Prehashed(hashes.SHA256())))

    rsa_key.public_key().verify(rsa_signature, b"payload", padding.PKCS1v15(), hashes.SHA256())
    ec_key.public_key().verify(ec_signature, b"payload", ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        rsa_key.public_key().verify(rsa_signature, b"other", padding.PKCS1v15(), hashes.SHA256())
    with pytest.raises(InvalidSignature):
        ec_key.public_key().verify(ec_signature, b"other", ec.ECDSA(hashes.SHA256()))


def test_private_half_can_not_be_had(rsa_key: HsmRSAPrivateKey, ec_key: HsmECPrivateKey) -> None:
    for key in (rsa_key, ec_key):
        with pytest.raises(SignsOnly):
            key.private_numbers()
        with pytest.raises(SignsOnly):
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def test_other_uses_are_refused(rsa_key: HsmRSAPrivateKey, ec_key: HsmECPrivateKey) -> None:
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)

    with pytest.raises(SignsOnly):
        rsa_key.sign(b"payload", pss, hashes.SHA256())
    with pytest.raises(SignsOnly):
        rsa_key.sign(b"payload", padding.PKCS1v15(), hashes.SHA384())
    with pytest.raises(SignsOnly):
        ec_key.sign(b"payload", ec.ECDSA(hashes.SHA384()))
    with pytest.raises(SignsOnly):
        rsa_key.decrypt(b"x", padding.PKCS1v15())
    with pytest.raises(SignsOnly):
        ec_key.exchange(ec.ECDH(), ec_key.public_key())


def test_copies_are_the_same_key(rsa_key: HsmRSAPrivateKey) -> None:
    assert copy.copy(rsa_key) is rsa_key
    assert copy.deepcopy(rsa_key) is rsa_key
    assert isinstance(rsa_key, rsa.RSAPrivateKey)
    assert rsa_key.key_size == 2048
