"""Distinguished names from what people write: any string becomes a valid attribute or is left out."""

import unicodedata
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from cryptography import x509
from cryptography.x509.oid import NameOID

MAX_OCTETS: Final = 64
"""RFC 5280 appendix A.1 allows 64 characters of a common or organisation name; octets are the safe reading.
"""


def clean(text: str) -> str:
    """One line of visible characters in NFC: control, format (bidi) and unassigned ones become spaces."""
    visible = (" " if unicodedata.category(char)[0] in "CZ" else char for char in text)
    return unicodedata.normalize("NFC", " ".join("".join(visible).split()))


def cut(text: str) -> str:
    """The longest start of `text` within `MAX_OCTETS` of UTF-8."""
    return text.encode("utf-8", "ignore")[:MAX_OCTETS].decode("utf-8", "ignore").strip()


def agent_name(*, name: str, operator: str, agent_id: UUID) -> x509.Name:
    """The subject of an agent: CN is its name (its id if nothing is left of it), serialNumber its id."""
    organization = cut(clean(operator))
    attributes = [
        x509.NameAttribute(NameOID.COMMON_NAME, cut(clean(name)) or str(agent_id)),
        x509.NameAttribute(NameOID.SERIAL_NUMBER, str(agent_id)),
    ]
    if organization:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def authority_name(*, organization: str, common_name: str) -> x509.Name:
    """The name of a CA; raises ValueError when nothing is left of the common name."""
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, cut(clean(common_name)))]
    if cleaned := cut(clean(organization)):
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, cleaned))
    return x509.Name(attributes)


def certificate_base_url(base_url: str) -> str:
    """The base address as it may stand in a certificate.

    RFC 5280 §4.2.1.6 asks for a full domain name or an address as host, which `localhost` is not.
    """
    parts = urlsplit(base_url)
    if parts.hostname != "localhost":
        return base_url.rstrip("/")
    netloc = f"127.0.0.1:{parts.port}" if parts.port else "127.0.0.1"
    return parts._replace(netloc=netloc).geturl().rstrip("/")
