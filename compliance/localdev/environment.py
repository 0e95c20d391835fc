"""The environment variables of the stack's Django processes; the caller's own choices win."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from .console import StepFailed
from .state import read_json

TOKENS = ("PKCS11_LIVE_PIN", "PKCS11_LIVE_TOKEN", "PKCS11_TEST_PIN", "PKCS11_TEST_TOKEN")
# Kept from the caller's environment; all other variables of the service are the stack's.
OVERRIDABLE = (
    *(*TOKENS, "PKCS11_SHARDS", "ALLOWED_HOSTS", "DEBUG", "LOG_FORMAT", "ENCRYPTION_KEYS", "SECRET_KEY"),
    *("TRUSTED_ISSUER_ALLOW_HTTP", "TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES"),
    *("SECOND_FACTOR", "WEBHOOK_ALLOW_HTTP", "WEBHOOK_ALLOW_PRIVATE_ADDRESSES", "WEB_THREADS", "WEB_WORKERS"),
)
# For operators' commands; no process that serves gets them.
OPERATORS = (
    *("DATABASE_OWNER_URL", "TEST_DATABASE_OWNER_URL"),
    *("DATABASE_READER_URL", "TEST_DATABASE_READER_URL"),
)
# Printed by `./run env`.
EXPORTED = (
    *("BASE_URL", "TENANT_ID", "LIVE_API_KEY", "TEST_API_KEY", "ADMIN_URL"),
    *("OPERATOR_USERNAME", "OPERATOR_PASSWORD", "OFFICER_USERNAME", "OFFICER_PASSWORD"),
    *("DATABASE_URL", "TEST_DATABASE_URL", *OPERATORS),
    *("REDIS_URL", "BROKER_URL", "PKCS11_MODULE", "SOFTHSM2_CONF"),
)


class Given(NamedTuple):
    """The servers given in the environment instead of embedded ones; None where none is given."""

    databases: tuple[str, str] | None
    redis: str | None


def given_servers(environ: Mapping[str, str], secrets: Mapping[str, str]) -> Given:
    """Read DATABASE_URL, TEST_DATABASE_URL and REDIS_URL.

    An address with one of our own passwords counts as unset: `./run env` printed it.
    """
    own = {value for name, value in secrets.items() if name.endswith("_password")}
    named = {name: environ.get(name) for name in ("DATABASE_URL", "TEST_DATABASE_URL", "REDIS_URL")}
    foreign = {name: url for name, url in named.items() if url and urlsplit(url).password not in own}
    live, test = foreign.get("DATABASE_URL"), foreign.get("TEST_DATABASE_URL")
    if bool(live) != bool(test):
        hint = "set both (two databases) or neither (the embedded PostgreSQL is used)"
        raise StepFailed("only one of DATABASE_URL and TEST_DATABASE_URL is set", hint=hint)
    return Given((live, test) if live and test else None, foreign.get("REDIS_URL"))


def service_name(environ: Mapping[str, str]) -> str:
    return environ.get("SERVICE_NAME") or "service"


def has_own_tokens(environ: Mapping[str, str]) -> bool:
    """Whether the caller names the HSM tokens to use."""
    return all(environ.get(name) for name in TOKENS)


def merged(stack: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return a child's whole environment: the caller's, the stack's over it, the caller's choices over that.

    `OPERATORS` are in it only if `stack` has them.
    """
    chosen = {name: environ[name] for name in OVERRIDABLE if environ.get(name)}
    if has_own_tokens(environ) and environ.get("SOFTHSM2_CONF"):
        chosen["SOFTHSM2_CONF"] = environ["SOFTHSM2_CONF"]
    kept = {name: value for name, value in environ.items() if name not in OPERATORS}
    return {**kept, "SERVICE_NAME": service_name(environ), **stack, **chosen}


def exports(environment: Mapping[str, str], demo: Path) -> dict[str, str]:
    """Return what `./run env` prints: addresses, and the demo tenant's API keys and log-ins."""
    made = {name.upper(): str(value) for name, value in read_json(demo).items()}
    values = {**environment, **made, "ADMIN_URL": f"{environment['BASE_URL']}/admin/"}
    return {name: values[name] for name in EXPORTED if name in values}
