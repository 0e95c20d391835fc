"""Certificates, revocation lists, delegation tokens, and the issuers that tenants trust."""

from datetime import timedelta

from compliance.settings.declaring import Section
from compliance.settings.service import BASE_URL

section = Section("Certificates and tokens")

CERTIFICATE_VALIDITY = timedelta(
    days=section.integer(
        "CERTIFICATE_VALIDITY_DAYS",
        365,
        "Longest validity of an agent's certificate.",
        unit="days",
        least=1,
        most=365,
    )
)
HIGH_RISK_CERTIFICATE_VALIDITY = timedelta(
    days=section.integer(
        "HIGH_RISK_CERTIFICATE_VALIDITY_DAYS",
        30,
        "The same, for a high-risk agent.",
        unit="days",
        least=1,
        most=365,
    )
)
OID_ARC: str = section.text(
    "OID_ARC",
    "1.3.6.1.4.1.32473.1",
    "Arc of the identity extension and the policy; set your own private enterprise number before issuing to"
    " outsiders (the default is reserved for documentation, RFC 5612).",
)
CRL_SHARDS: int = section.integer(
    "CRL_SHARDS",
    16,
    "Partitioned lists of a new issuing CA, besides the full one; with 0 the full one only.",
    least=0,
    most=32_767,
)
CRL_VALIDITY = timedelta(
    hours=section.integer(
        "CRL_VALIDITY_HOURS",
        24,
        "From a list's this update to its next update.",
        unit="hours",
        least=1,
        most=8_760,
    )
)

TOKEN_ISSUER: str = section.text(
    "TOKEN_ISSUER",
    BASE_URL,
    "`iss` of delegation tokens; tokens of another issuer are refused, so keep it if the address changes.",
    default_is="BASE_URL",
).rstrip("/")
TOKEN_KEY_LIFETIME = timedelta(
    days=section.integer(
        "TOKEN_KEY_LIFETIME_DAYS",
        90,
        "Time for which a token key signs.",
        unit="days",
        least=1,
        most=3_650,
    )
)
DPOP_WITHOUT_REPLAY_STORE: str = section.text(
    "DPOP_WITHOUT_REPLAY_STORE",
    "refuse",
    "DPoP proofs while Redis is away: `refuse` answers 503, `accept` accepts them, and then a stolen proof"
    " works again for a minute or two. A Redis that evicts keys or restarts empty forgets used proofs too.",
)
DPOP_NONCE_REQUIRED: bool = section.flag(
    "DPOP_NONCE_REQUIRED",
    False,
    "Whether a DPoP proof sent to obtain a token must carry a nonce of this service.",
)

TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES: bool = section.flag(
    "TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES",
    False,
    "Whether keys of tenants' [trusted issuers](delegation.md#trusted-issuers) may be fetched from private"
    " addresses; for development only.",
)
TRUSTED_ISSUER_ALLOW_HTTP: bool = section.flag(
    "TRUSTED_ISSUER_ALLOW_HTTP", False, "Whether they may be fetched over plain HTTP; for development only."
)
TRUSTED_ISSUER_CA_FILE: str = section.text(
    "TRUSTED_ISSUER_CA_FILE",
    "",
    "PEM file of roots to check those issuers against.",
    default_is="public roots",
)
TRUSTED_ISSUER_TIMEOUT_SECONDS: float = 5.0
