"""The environment every Django process of the stack gets: addresses, secrets, tokens.

What is set in the caller's environment wins over what the embedded stack would give.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .console import StepFailed
from .state import read_json

# Kept from the caller when he set them; everything else of the contract comes from the stack.
TOKENS = ("PKCS11_LIVE_PIN", "PKCS11_LIVE_TOKEN", "PKCS11_TEST_PIN", "PKCS11_TEST_TOKEN")
# Key hosts of the stack, unless PKCS11_HOSTS says how many.
KEY_HOSTS = 2
OVERRIDABLE = (
    *TOKENS,
    "ALLOWED_HOSTS",
    "DEBUG",
    "ENCRYPTION_KEYS",
    "PKCS11_SHARDS",
    "SECRET_KEY",
    "WEBHOOK_ALLOW_HTTP",
    "WEBHOOK_ALLOW_PRIVATE_ADDRESSES",
    "WEB_THREADS",
    "WEB_WORKERS",
)
EXPORTED = (
    "BASE_URL",
    "LIVE_API_KEY",
    "TEST_API_KEY",
    "ADMIN_URL",
    "OPERATOR_USERNAME",
    "OPERATOR_PASSWORD",
    "OFFICER_USERNAME",
    "OFFICER_PASSWORD",
    "DATABASE_URL",
    "TEST_DATABASE_URL",
    "DATABASE_OWNER_URL",
    "TEST_DATABASE_OWNER_URL",
    "DATABASE_READER_URL",
    "TEST_DATABASE_READER_URL",
    "REDIS_URL",
    "PKCS11_MODULE",
    "SOFTHSM2_CONF",
)

# The operator's: no process that serves gets them.
OPERATORS = (
    "DATABASE_OWNER_URL",
    "TEST_DATABASE_OWNER_URL",
    "DATABASE_READER_URL",
    "TEST_DATABASE_READER_URL",
)


@dataclass(frozen=True)
class External:
    """The servers given in the environment instead of the embedded ones; None where there is none."""

    database: tuple[str, str] | None
    owners: tuple[str, str] | None
    redis: str | None


def external(environ: Mapping[str, str], secrets: Mapping[str, str]) -> External:
    """Read DATABASE_URL with TEST_DATABASE_URL, their owners', and REDIS_URL; an empty value counts as unset.

    So does a value with a password of our own: somebody took over what `./run env` printed.
    """
    own = {value for name, value in secrets.items() if name.endswith("_password")}
    databases = _pair(environ, own, "DATABASE_URL", "the embedded PostgreSQL is used")
    owners = _pair(environ, own, "DATABASE_OWNER_URL", "DATABASE_URL's role then owns the tables")
    redis = _foreign(environ.get("REDIS_URL"), own)
    return External(databases, owners if databases else None, redis)


def _pair(environ: Mapping[str, str], own: set[str], name: str, otherwise: str) -> tuple[str, str] | None:
    """The variable `name` and the one with TEST_ before it; None where neither is set."""
    live, test = (_foreign(environ.get(variable), own) for variable in (name, f"TEST_{name}"))
    if bool(live) != bool(test):
        raise StepFailed(
            f"only one of {name} and TEST_{name} is set",
            hint=f"set both (two databases) or neither ({otherwise})",
        )
    return (live, test) if live and test else None


def _foreign(url: str | None, own_passwords: set[str]) -> str | None:
    return url if url and urlsplit(url).password not in own_passwords else None


def service_name(environ: Mapping[str, str]) -> str:
    """SERVICE_NAME, which gives databases and tokens their names."""
    return environ.get("SERVICE_NAME") or "service"


def has_own_tokens(environ: Mapping[str, str]) -> bool:
    """Whether the caller names the HSM tokens to use, instead of having some made."""
    return all(environ.get(name) for name in TOKENS)


def hosts_wanted(environ: Mapping[str, str]) -> int:
    """How many key hosts to run: as PKCS11_HOSTS says, none for tokens of the caller's own."""
    given = environ.get("PKCS11_HOSTS", "")
    if given and not given.isdigit():
        raise StepFailed(f"PKCS11_HOSTS={given} is no number", hint="correct or unset PKCS11_HOSTS")
    usual = 0 if has_own_tokens(environ) else KEY_HOSTS
    return int(given) if given else usual


def application(secrets: Mapping[str, str], *, base_url: str) -> dict[str, str]:
    """The contract's part that no server decides."""
    return {
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "BASE_URL": base_url,
        "ENCRYPTION_KEYS": secrets["encryption_key"],
        "SECRET_KEY": secrets["secret_key"],
        # A developer's receiver listens on plain HTTP and on loopback; production allows neither.
        "WEBHOOK_ALLOW_HTTP": "true",
        "WEBHOOK_ALLOW_PRIVATE_ADDRESSES": "true",
        "WEB_THREADS": "8",
        "WEB_WORKERS": "2",
    }


def merged(
    stack: Mapping[str, str], environ: Mapping[str, str], *, root: Path, cache: Path
) -> dict[str, str]:
    """The whole environment of a child: the caller's, the stack's contract over it, his own choices kept.

    The operator's variables are in it only where `stack` has them.
    """
    chosen = {name: environ[name] for name in OVERRIDABLE if environ.get(name)}
    if has_own_tokens(environ) and environ.get("SOFTHSM2_CONF"):
        chosen["SOFTHSM2_CONF"] = environ["SOFTHSM2_CONF"]
    kept = {name: value for name, value in environ.items() if name not in OPERATORS}
    result = {**kept, "SERVICE_NAME": service_name(environ), **stack, **chosen}
    result["DJANGO_SETTINGS_MODULE"] = "compliance.settings"
    result["PYTHONPATH"] = str(root)
    if result.pop("PYTHONDONTWRITEBYTECODE", None):
        # Keep the tree clean as asked, yet don't compile everything anew in each process.
        result.setdefault("PYTHONPYCACHEPREFIX", str(cache))
    return result


def exports(contract: Mapping[str, str], demo: Path) -> dict[str, str]:
    """What `./run env` prints: the contract's addresses, and the demo tenant's keys and log-ins."""
    made = {name.upper(): str(value) for name, value in read_json(demo).items()}
    values = made | dict(contract) | {"ADMIN_URL": f"{contract['BASE_URL']}/admin/"}
    return {name: values[name] for name in EXPORTED if name in values}


def as_shell(values: Mapping[str, str]) -> str:
    """One `export NAME=value` line each, quoted for any POSIX shell."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
