"""The HSM (PKCS#11): one main token for each environment, shards for agents' keys, key hosts, key pools."""

from compliance.settings.declaring import Section
from compliance.settings.service import SERVICE_NAME

section = Section("HSM", "What they mean: [HSM](hsm.md).")

PKCS11_MODULE: str = section.text(
    "PKCS11_MODULE", "", "Path of the PKCS#11 library; without it certify answers 503."
)


def _token(environment: str) -> dict[str, str]:
    upper = environment.upper()
    return {
        "label": section.text(
            f"PKCS11_{upper}_TOKEN",
            f"{SERVICE_NAME}-{environment}",
            f"Label of the {environment} environment's token.",
            default_is=f"<SERVICE_NAME>-{environment}",
        ),
        "pin": section.text(f"PKCS11_{upper}_PIN", "", "User PIN of that token and its shards.", secret=True),
    }


PKCS11_TOKENS: dict[str, dict[str, str]] = {"live": _token("live"), "test": _token("test")}
PKCS11_SHARDS: int = section.integer(
    "PKCS11_SHARDS",
    64,
    "Tokens `<label>-00`, `-01` … that agents' keys are spread over; those that exist are used.",
    least=0,
    most=100,
)
PKCS11_SO_PIN: str = section.text(
    "PKCS11_SO_PIN",
    "",
    "Security officer's PIN, with which `ca_init`, and nothing else, makes missing shards.",
    secret=True,
)
PKCS11_HOSTS: int = section.integer(
    "PKCS11_HOSTS",
    0,
    "Key hosts (`manage.py key_host`) that open the HSM for all others; with 0 every process opens it.",
    least=0,
)
PKCS11_HOST_FOLDER: str = section.text(
    "PKCS11_HOST_FOLDER",
    "/run/service-keys",
    "Folder of the key hosts' sockets, which only the service's user may enter.",
)
PKCS11_HOST_CONFS: list[str] = section.words(
    "PKCS11_HOST_CONFS", [], "`SOFTHSM2_CONF` of each key host, if each has tokens of its own."
)
section.external("SOFTHSM2_CONF", "text", "", "SoftHSM's own configuration file; SoftHSM reads it.")

AGENT_KEYS: str = section.text(
    "AGENT_KEYS",
    "resident",
    "Where new agents' private keys lie: `resident` in the HSM for good, or `wrapped` in the database, "
    "encrypted by [a key of the HSM](hsm.md#wrapped-keys); other settings are refused (`certificates.E001`).",
)
PKCS11_UNWRAPPED_KEYS: int = section.integer(
    "PKCS11_UNWRAPPED_KEYS",
    32,
    "Wrapped keys of a token that stay unwrapped in each process that opens the HSM.",
    least=1,
)
KEY_POOL_SIZE: int = section.integer(
    "KEY_POOL_SIZE",
    8,
    "Agents' keys made ahead in each environment; with 0 each is made when it is needed.",
    least=0,
)
KEY_POOL_SIZES: dict[str, int | None] = {
    environment: section.integer(
        f"KEY_POOL_SIZE_{environment.upper()}",
        None,
        f"The same, for the {environment} environment alone.",
        default_is="KEY_POOL_SIZE",
        least=0,
    )
    for environment in ("live", "test")
}
