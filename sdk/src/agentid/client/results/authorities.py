"""Answers about authorities."""

from dataclasses import dataclass
from datetime import datetime

from agentid.client.records import Record


@dataclass(frozen=True, kw_only=True)
class Authority(Record):
    """A CA, its certificate and what it still does."""

    role: str
    status: str
    subject: str
    common_name: str
    serial_number: str
    not_before: datetime
    not_after: datetime
    certificate_url: str
    crl_url: str
    sha256_fingerprint: str
    pem: str


@dataclass(frozen=True, kw_only=True)
class Chain(Record):
    """The CAs of an environment, the one in service first, then newest first."""

    environment: str
    chain_pem: str
    certificates: tuple[Authority, ...]
