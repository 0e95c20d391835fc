"""Certificates, revocation lists, delegation tokens, and the issuers that tenants trust."""

from datetime import timedelta

from compliance.settings.declaring import Section
from compliance.settings.service import BASE_URL

section = Section("Certificates and tokens")

CERTIFICATE_VALIDITY = timedelta(
    days=section.integer("CERTIFICATE_VALIDITY_DAYS", 365, unit="days", least=1, most=365)
)
HIGH_RISK_CERTIFICATE_VALIDITY = timedelta(
    days=section.integer("HIGH_RISK_CERTIFICATE_VALIDITY_DAYS", 30, unit="days", least=1, most=365)
)
OID_ARC: str = section.text("OID_ARC", "1.3.6.1.4.1.32473.1")
CRL_SHARDS: int = section.integer("CRL_SHARDS", 16, least=0, most=32_767)
CRL_VALIDITY = timedelta(hours=section.integer("CRL_VALIDITY_HOURS", 24, unit="hours", least=1, most=8_760))

TOKEN_ISSUER: str = section.text("TOKEN_ISSUER", BASE_URL, default_is="BASE_URL").rstrip("/")
TOKEN_KEY_LIFETIME = timedelta(
    days=section.integer("TOKEN_KEY_LIFETIME_DAYS", 90, unit="days", least=1, most=3_650)
)
DPOP_NONCE_REQUIRED: bool = section.flag("DPOP_NONCE_REQUIRED", False)

TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES: bool = section.flag("TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES", False)
TRUSTED_ISSUER_ALLOW_HTTP: bool = section.flag("TRUSTED_ISSUER_ALLOW_HTTP", False)
TRUSTED_ISSUER_CA_FILE: str = section.text("TRUSTED_ISSUER_CA_FILE", "", default_is="public roots")
TRUSTED_ISSUER_TIMEOUT_SECONDS: float = 5.0
