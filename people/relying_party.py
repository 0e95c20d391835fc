"""The name that security keys know the console by: the relying party id, and the origin of its pages."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings

DEFAULT_PORTS: Final = {"https": 443, "http": 80}
LOCAL: Final = "localhost"
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


@dataclass(frozen=True)
class RelyingParty:
    """`id` is a host name, `origin` the scheme, host and port that browsers name in what keys sign."""

    id: str
    origin: str


def current() -> RelyingParty:
    """Return the relying party of the settings; the origin is BASE_URL's by default, the id its host name."""
    origin = settings.WEBAUTHN_ORIGIN or _origin_of(settings.BASE_URL)
    return RelyingParty(settings.WEBAUTHN_RP_ID or _host_of(origin), origin)


def problem() -> str | None:
    """Return why browsers would offer no security keys with these settings, or None."""
    party = current()
    host = _host_of(party.origin)
    if party.origin != _origin_of(party.origin) or not _HOST.fullmatch(host):
        return f"{party.origin!r} is not an origin such as https://console.example.org"
    if _is_address(host) or _is_address(party.id):
        return f"{party.id!r} is an address, and keys are bound to names"
    if not party.origin.startswith("https://") and host != LOCAL:
        return f"{party.origin} is not HTTPS"
    if host == party.id:
        return None
    if not _HOST.fullmatch(party.id) or "." not in party.id or not host.endswith(f".{party.id}"):
        return f"{party.id!r} is neither the host of {party.origin} nor a domain it is in"
    return None


def _origin_of(url: str) -> str:
    """Return the origin as browsers write it; on loopback, of `localhost`: keys know no addresses."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    host = parts.hostname or ""
    if _is_address(host) and ipaddress.ip_address(host).is_loopback:
        host = LOCAL
    shown = "" if port in {None, DEFAULT_PORTS.get(parts.scheme)} else f":{port}"
    return f"{parts.scheme}://{host}{shown}" if parts.scheme in DEFAULT_PORTS else ""


def _host_of(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
