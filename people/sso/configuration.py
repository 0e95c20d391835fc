"""The settings of single sign-on, read together."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import reverse

from compliance.console.addresses import within
from compliance.core.environments import Environment
from compliance.settings.declaring import read_text
from people.errors import ProviderUnavailable

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True)
class SignOn:
    """How people sign in at the provider.

    `allowed_claim`, if it is named, must have one of `allowed_values`.
    """

    issuer: str
    client_id: str
    scopes: str
    label: str
    algorithms: frozenset[str]
    allowed_claim: str
    allowed_values: frozenset[str]
    creates_people: bool
    factor_amr: frozenset[str]
    factor_acr: frozenset[str]
    ca_file: str | None
    timeout_seconds: float


def sign_on() -> SignOn | None:
    """Return the configuration; None where single sign-on is off, or half configured."""
    if not (settings.OIDC_ISSUER and settings.OIDC_CLIENT_ID and has_secret()):
        return None
    return SignOn(
        issuer=settings.OIDC_ISSUER,
        client_id=settings.OIDC_CLIENT_ID,
        scopes=" ".join(settings.OIDC_SCOPES),
        label=settings.OIDC_LABEL,
        algorithms=frozenset(settings.OIDC_ALGORITHMS),
        allowed_claim=settings.OIDC_ALLOWED_CLAIM,
        allowed_values=frozenset(settings.OIDC_ALLOWED_VALUES),
        creates_people=settings.OIDC_CREATE_PEOPLE,
        factor_amr=frozenset(settings.OIDC_SECOND_FACTOR_AMR),
        factor_acr=frozenset(settings.OIDC_SECOND_FACTOR_ACR),
        ca_file=settings.OIDC_CA_FILE or None,
        timeout_seconds=settings.OIDC_TIMEOUT_SECONDS,
    )


def is_only_way() -> bool:
    """Whether nobody signs in with a password; so too while the rest is half configured."""
    return bool(settings.OIDC_ONLY)


def has_secret() -> bool:
    return bool(settings.OIDC_CLIENT_SECRET or settings.OIDC_CLIENT_SECRET_FILE)


def client_secret() -> str:
    """Return the client's secret, from its file each time. Raises: ProviderUnavailable."""
    if settings.OIDC_CLIENT_SECRET:
        return str(settings.OIDC_CLIENT_SECRET)
    try:
        return read_text(settings.OIDC_CLIENT_SECRET_FILE).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ProviderUnavailable("The client secret of single sign-on cannot be read") from error


def address_of(page: str) -> str:
    """Return the whole address of a page of the console, as the provider has it registered."""
    with within(Environment.LIVE):
        return f"{settings.BASE_URL}{reverse(page)}"


def is_safe_address(address: str) -> bool:
    """Whether nobody between can read what is sent there: HTTPS, or HTTP to this machine."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or parts.password is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK)
