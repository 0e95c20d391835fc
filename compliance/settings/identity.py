"""The HSM and its keys, certificates, revocation lists, delegation tokens, and trusted issuers.

The HSM (PKCS#11) has one main token for each environment, and shards for agents' keys.
"""

from datetime import timedelta

from compliance.settings.declaring import Section
from compliance.settings.service import BASE_URL, SERVICE_NAME

hsm = Section("HSM")

PKCS11_MODULE: str = hsm.text("PKCS11_MODULE", "")


PKCS11_TOKENS: dict[str, dict[str, str]] = {
    name: {
        "label": hsm.text(
            f"PKCS11_{name.upper()}_TOKEN", f"{SERVICE_NAME}-{name}", default_is=f"<SERVICE_NAME>-{name}"
        ),
        "pin": hsm.text(f"PKCS11_{name.upper()}_PIN", "", secret=True),
    }
    for name in ("live", "test")
}
PKCS11_SHARDS: int = hsm.integer("PKCS11_SHARDS", 64, least=0, most=100)
PKCS11_SO_PIN: str = hsm.text("PKCS11_SO_PIN", "", secret=True)
PKCS11_HOSTS: int = hsm.integer("PKCS11_HOSTS", 0, least=0)
PKCS11_HOST_FOLDER: str = hsm.text("PKCS11_HOST_FOLDER", "/run/service-keys")
PKCS11_HOST_CONFS: list[str] = hsm.words("PKCS11_HOST_CONFS", [])
hsm.text("SOFTHSM2_CONF", "", takes_file=False)

AGENT_KEYS: str = hsm.text("AGENT_KEYS", "resident")
KEY_POOL_SIZE: int = hsm.integer("KEY_POOL_SIZE", 8, least=0)

pki = Section("Certificates and tokens")

CERTIFICATE_VALIDITY = timedelta(
    days=pki.integer("CERTIFICATE_VALIDITY_DAYS", 365, unit="days", least=1, most=365)
)
HIGH_RISK_CERTIFICATE_VALIDITY = timedelta(
    days=pki.integer("HIGH_RISK_CERTIFICATE_VALIDITY_DAYS", 30, unit="days", least=1, most=365)
)
OID_ARC: str = pki.text("OID_ARC", "1.3.6.1.4.1.32473.1")
CRL_SHARDS: int = pki.integer("CRL_SHARDS", 16, least=0, most=32_767)
CRL_VALIDITY = timedelta(hours=pki.integer("CRL_VALIDITY_HOURS", 24, unit="hours", least=1, most=8_760))

TOKEN_ISSUER: str = pki.text("TOKEN_ISSUER", BASE_URL, default_is="BASE_URL").rstrip("/")
TOKEN_KEY_LIFETIME = timedelta(
    days=pki.integer("TOKEN_KEY_LIFETIME_DAYS", 90, unit="days", least=1, most=3_650)
)
DPOP_NONCE_REQUIRED: bool = pki.flag("DPOP_NONCE_REQUIRED", False)

TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES: bool = pki.flag("TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES", False)
TRUSTED_ISSUER_ALLOW_HTTP: bool = pki.flag("TRUSTED_ISSUER_ALLOW_HTTP", False)
TRUSTED_ISSUER_CA_FILE: str = pki.text("TRUSTED_ISSUER_CA_FILE", "", default_is="public roots")
TRUSTED_ISSUER_TIMEOUT_SECONDS: float = 5.0
