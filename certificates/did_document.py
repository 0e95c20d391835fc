"""An agent's DID document and its resolution result (W3C DID Core; DID Resolution, HTTP binding)."""

from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding

from compliance.encodings import b64_encode, b64url_encode

CONTEXT = ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/jwk/v1"]


def did_document(
    did: str, *, controller: str | None, chain: list[x509.Certificate], verify_url: str | None
) -> dict[str, Any]:
    """The document of an agent; `chain` is its certificate and the CAs above it, empty without an active one.

    The verification method's key is the certificate's, with the chain beside it (`x5c`, RFC 7517 §4.7).
    """
    document: dict[str, Any] = {"@context": CONTEXT, "id": did, "controller": controller or did}
    if chain:
        method = f"{did}#{chain[0].serial_number:040x}"
        jwk = public_jwk(chain)
        document["verificationMethod"] = [
            {"id": method, "type": "JsonWebKey", "controller": did, "publicKeyJwk": jwk}
        ]
        document["assertionMethod"] = [method]
        document["authentication"] = [method]
    if verify_url:
        service = {
            "id": f"{did}#certificate",
            "type": "CertificateVerification",
            "serviceEndpoint": verify_url,
        }
        document["service"] = [service]
    return document


def public_jwk(chain: list[x509.Certificate]) -> dict[str, Any]:
    """The leaf's RSA public key as a JWK (RFC 7518 §6.3.1), with `x5c`."""
    key = chain[0].public_key()
    if not isinstance(key, RSAPublicKey):
        raise TypeError("agents' keys are RSA")
    numbers = key.public_numbers()
    return {
        "kty": "RSA",
        "alg": "RS256",
        "n": _number(numbers.n),
        "e": _number(numbers.e),
        "x5c": [b64_encode(link.public_bytes(Encoding.DER)) for link in chain],
    }


def _number(value: int) -> str:
    raw = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return b64url_encode(raw)
