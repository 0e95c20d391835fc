"""JWKs and their thumbprints, against vectors and against PyJWT."""

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from delegation.jose.holder_keys import thumbprint
from delegation.jose.jwks import public_jwk, public_key

# RFC 7517 appendix A.1: the example EC key; RFC 8037-style thumbprints are computed as RFC 7638 §3.1 says.
X = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"
Y = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"


def test_thumbprint_of_the_example_key_of_rfc_7517() -> None:
    assert thumbprint({"kty": "EC", "crv": "P-256", "x": X, "y": Y, "use": "enc", "kid": "1"}) == (
        "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s"
    )


def test_a_jwk_describes_its_key() -> None:
    key = ec.generate_private_key(ec.SECP256R1()).public_key()

    jwk = public_jwk(key)

    assert public_key(jwk).public_numbers() == key.public_numbers()
    assert jwt.PyJWK(jwk).key.public_numbers() == key.public_numbers()
    assert jwk["kid"] == thumbprint(jwk)
    assert set(jwk) == {"kty", "crv", "x", "y", "kid", "alg", "use"}


def test_coordinates_keep_their_leading_zeros() -> None:
    keys = (ec.derive_private_key(number, ec.SECP256R1()).public_key() for number in range(1, 2_000))
    short = next(key for key in keys if key.public_numbers().x < 2**248)

    assert len(public_jwk(short)["x"]) == 43


def test_other_curves_are_refused() -> None:
    with pytest.raises(ValueError, match="P-256"):
        public_jwk(ec.generate_private_key(ec.SECP384R1()).public_key())
