"""An agent's DID document: its key with the certificates above it, and the addresses of its status."""

from collections.abc import Iterator
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import AuthorityInformationAccessOID
from jwt.algorithms import RSAAlgorithm

from compliance.core.encodings import b64_encode

CONTEXT = ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/jwk/v1"]


def did_document(did: str, *, chain: list[x509.Certificate], base_url: str) -> dict[str, Any]:
    """The document of an agent; `chain` is its certificate in force and the CAs above it, or empty."""
    document: dict[str, Any] = {"@context": CONTEXT, "id": did, "controller": did}
    if chain:
        serial = f"{chain[0].serial_number:040x}"
        method = f"{did}#{serial}"
        document["verificationMethod"] = [
            {"id": method, "type": "JsonWebKey", "controller": did, "publicKeyJwk": _public_jwk(chain)}
        ]
        document["assertionMethod"] = [method]
        document["authentication"] = [method]
        endpoints = {
            "certificate": ("CertificateVerification", f"{base_url}/v1/verify/{serial}"),
            **dict(_status_endpoints(chain[0])),
            "agent-card": ("A2AAgentCard", f"{base_url}/v1/agent-cards/{did}"),
        }
        document["service"] = [
            {"id": f"{did}#{name}", "type": kind, "serviceEndpoint": endpoint}
            for name, (kind, endpoint) in endpoints.items()
        ]
    return document


def _status_endpoints(leaf: x509.Certificate) -> Iterator[tuple[str, tuple[str, str]]]:
    """The revocation services that the certificate names (RFC 5280 §4.2.1.13, §4.2.2.1)."""
    points = leaf.extensions.get_extension_for_class(x509.CRLDistributionPoints).value
    for point in points:
        for name in point.full_name or ():
            yield "crl", ("CertificateRevocationList", name.value)
    for access in leaf.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value:
        if access.access_method == AuthorityInformationAccessOID.OCSP:
            yield "ocsp", ("OnlineCertificateStatusProtocol", access.access_location.value)


def _public_jwk(chain: list[x509.Certificate]) -> dict[str, Any]:
    """The RSA public key of the first certificate as a JWK (RFC 7518 §6.3.1), with `x5c`."""
    key = chain[0].public_key()
    if not isinstance(key, RSAPublicKey):
        raise TypeError("agents' keys are RSA")
    jwk = RSAAlgorithm.to_jwk(key, as_dict=True)
    x5c = [b64_encode(link.public_bytes(Encoding.DER)) for link in chain]
    return {"kty": jwk["kty"], "alg": "RS256", "n": jwk["n"], "e": jwk["e"], "x5c": x5c}
