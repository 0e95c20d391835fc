"""What the settings of single sign-on say together."""

from urllib.parse import urlsplit

from django.conf import settings
from django.urls import reverse

from compliance.console.addresses import within
from compliance.core.environments import Environment
from compliance.core.errors import Unavailable
from compliance.settings.declaring import read_text

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class ProviderUnavailable(Unavailable):
    """The identity provider gave no answer that can be used; the message says what it did instead."""


def is_on() -> bool:
    """Whether people can sign in at the provider; not while the settings are half given.

    OIDC_ONLY counts even then: nobody signs in with a password.
    """
    has_secret = settings.OIDC_CLIENT_SECRET or settings.OIDC_CLIENT_SECRET_FILE
    return bool(settings.OIDC_ISSUER and settings.OIDC_CLIENT_ID and has_secret)


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
