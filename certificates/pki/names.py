"""Distinguished names from free text: any string becomes a valid attribute or is left out."""

import unicodedata
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from cryptography import x509
from cryptography.x509.oid import NameOID

MAX_OCTETS: Final = 64
"""RFC 5280 appendix A.1 allows names of 64 characters; to count octets is the safe reading."""


def attribute(text: str) -> str:
    """One line of visible characters in NFC, cut to `MAX_OCTETS` of UTF-8.

    Control, format (bidi) and unassigned characters become spaces.
    """
    visible = (" " if unicodedata.category(char)[0] in "CZ" else char for char in text)
    line = unicodedata.normalize("NFC", " ".join("".join(visible).split()))
    return line.encode("utf-8", "ignore")[:MAX_OCTETS].decode("utf-8", "ignore").strip()


def agent_name(*, name: str, operator: str, agent_id: UUID) -> x509.Name:
    """The subject of an agent: its name (or id) as CN, its operator as O, its id as serialNumber."""
    common_name = attribute(name) or str(agent_id)
    return _name(operator, common_name, x509.NameAttribute(NameOID.SERIAL_NUMBER, str(agent_id)))


def authority_name(*, organization: str, common_name: str) -> x509.Name:
    """The name of a CA or OCSP responder; raises ValueError for a blank common name."""
    return _name(organization, attribute(common_name))


def _name(organization: str, common_name: str, *others: x509.NameAttribute) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name), *others]
    if cleaned := attribute(organization):
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, cleaned))
    return x509.Name(attributes)


def certificate_base_url(base_url: str) -> str:
    """The service's address in certificates: RFC 5280 §4.2.1.6 allows an IP address, but not `localhost`."""
    parts = urlsplit(base_url)
    if parts.hostname != "localhost":
        return base_url.rstrip("/")
    netloc = f"127.0.0.1:{parts.port}" if parts.port else "127.0.0.1"
    return parts._replace(netloc=netloc).geturl().rstrip("/")
