"""Agent cards (docs/agent-cards.md): A2A cards, signed with the key of the agent's certificate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from agentid.errors import NotValid, Reason
from agentid.jose import b64url_decode, b64url_encode, claim, read_object
from agentid.verify.messages import canonical, check_rsa
from agentid.verify.x509.certificates import (
    RevocationSource,
    TrustedAuthorities,
    VerifiedCertificate,
    verify_certificate,
)

HEADER_NAMES: Final = frozenset({"alg", "kid", "typ"})
PEM_BEGIN, PEM_END = "-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n"


@dataclass(frozen=True)
class VerifiedCard:
    """A card that the agent's key signed, without its signatures."""

    signer: VerifiedCertificate
    card: Mapping[str, Any] = field(repr=False)


def certificate_of(document: Mapping[str, Any], kid: str) -> str:
    """The certificate in a DID document (or its resolution result) under this DID URL, as PEM.

    It counts only after `verify_certificate`. Raises: NotValid (unknown_key).
    """
    found = document.get("didDocument", document)
    methods = found.get("verificationMethod") if isinstance(found, dict) else None
    for method in methods if isinstance(methods, list) else []:
        key = method.get("publicKeyJwk") if isinstance(method, dict) and method.get("id") == kid else None
        chain = key.get("x5c") if isinstance(key, dict) else None
        if isinstance(chain, list) and chain and isinstance(chain[0], str):
            return PEM_BEGIN + chain[0] + PEM_END
    raise NotValid(Reason.UNKNOWN_KEY, "the DID document has no such key")


def verify_card(
    card: Mapping[str, Any],
    *,
    document: Mapping[str, Any],
    did: str,
    trusted: TrustedAuthorities,
    revocation: RevocationSource | None,
    now: datetime,
) -> VerifiedCard:
    """Check the card of the agent `did` by the certificate in its DID document. Raises: NotValid.

    The certificate must stand under a pinned root and state this DID; the card names no key that counts:
    a header with `jku`, `jwk` or `x5c` is refused.
    """
    content = {name: value for name, value in card.items() if name != "signatures"}
    signatures = card.get("signatures")
    if not isinstance(signatures, list) or len(signatures) != 1 or not isinstance(signatures[0], dict):
        raise NotValid(Reason.MALFORMED, "not one signature")
    if set(signatures[0]) != {"protected", "signature"}:
        raise NotValid(Reason.MALFORMED, "not a signature with a protected header alone")
    protected, signature = (claim(signatures[0], name, str) for name in ("protected", "signature"))
    header = read_object(b64url_decode(protected))
    if header.get("alg") != "RS256":
        raise NotValid(Reason.UNSUPPORTED_ALGORITHM, "only RS256 is accepted")
    kid = header.get("kid")
    if set(header) != HEADER_NAMES or header["typ"] != "JOSE" or not isinstance(kid, str):
        raise NotValid(Reason.MALFORMED, "the header is not that of a card")
    signer = verify_certificate(
        certificate_of(document, kid), trusted=trusted, revocation=revocation, now=now
    )
    if signer.identity.did != did or kid != f"{did}#{signer.serial_number}":
        raise NotValid(Reason.WRONG_KEY, "the card is signed by another agent, or another certificate")
    signed = f"{protected}.{b64url_encode(canonical(content))}".encode()
    check_rsa(signer, b64url_decode(signature), signed)
    return VerifiedCard(signer, content)
