"""The HSM (PKCS#11): one main token for each environment, shards for agents' keys, key hosts, key pools."""

from compliance.settings.declaring import Section
from compliance.settings.service import SERVICE_NAME

section = Section("HSM")

PKCS11_MODULE: str = section.text("PKCS11_MODULE", "")


def _token(environment: str) -> dict[str, str]:
    upper = environment.upper()
    return {
        "label": section.text(
            f"PKCS11_{upper}_TOKEN",
            f"{SERVICE_NAME}-{environment}",
            default_is=f"<SERVICE_NAME>-{environment}",
        ),
        "pin": section.text(f"PKCS11_{upper}_PIN", "", secret=True),
    }


PKCS11_TOKENS: dict[str, dict[str, str]] = {"live": _token("live"), "test": _token("test")}
PKCS11_SHARDS: int = section.integer("PKCS11_SHARDS", 64, least=0, most=100)
PKCS11_SO_PIN: str = section.text("PKCS11_SO_PIN", "", secret=True)
PKCS11_HOSTS: int = section.integer("PKCS11_HOSTS", 0, least=0)
PKCS11_HOST_FOLDER: str = section.text("PKCS11_HOST_FOLDER", "/run/service-keys")
PKCS11_HOST_CONFS: list[str] = section.words("PKCS11_HOST_CONFS", [])
section.external("SOFTHSM2_CONF", "text", "")

AGENT_KEYS: str = section.text("AGENT_KEYS", "resident")
KEY_POOL_SIZE: int = section.integer("KEY_POOL_SIZE", 8, least=0)
